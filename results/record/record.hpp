// A record: one measured cell with everything that a reader needs to trust it. Also writes the files of
// records. Field names are a contract (docs/reference/records.md).
//
// A record file has the records of one run, one sealed record in each line. Its name is
// `<utc time>-<command>-<short id>.jsonl`. It appears whole or not at all (write_durable_file()), and never
// changes.
//
// Each line ends with a seal: the number of the line, the number of lines of its run, and the CRC32C of the
// text of the line up to there. The seal is the last member of the record's JSON object, so that a line is
// still one JSON object:
//
// {"schema":1,...,"reason":"","seal":{"line":2,"of":3,"crc32c":"0a1b2c3d"}}
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/json.hpp"
#include "io_backends/core/metric.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/system/durable_file.hpp"

namespace penstock {

// Whether the figures of a record count fully, or why not. In order from harmless to fatal.
enum class Verdict : uint8_t {
  ok,
  short_time,  // written "short"
  client_bound,
  ceiling_invalid,
  degraded,
  not_warm,
  not_cold,
  wrong_bytes,
  timed_out,
  failed,
  skipped,
  interrupted,
};
inline constexpr Verdict kWorstVerdict = Verdict::interrupted;
// The name and the meaning of each verdict, in the order of the enum Verdict.
inline constexpr std::string_view kVerdicts[][2] = {
    {"ok", "The measurement was made as requested."},
    {"short", "The measured time is shorter than --min-time."},
    {"client_bound", "The processors of this machine were the limit, not the tier."},
    {"ceiling_invalid", "The rate is higher than its measured ceiling, so that ceiling is unreliable."},
    {"degraded",
     "The figures are of a part of the data: samples or objects were skipped, or a session or an import "
     "lacks parts."},
    {"not_warm", "The page cache could not be filled with the data."},
    {"not_cold", "The data could not be removed from the page cache."},
    {"wrong_bytes", "The bytes that were read differ from those that were written."},
    {"timed_out", "The tier did not answer in time."},
    {"failed", "The measurement ended in an error."},
    {"skipped", "This build or this machine lacks something that the measurement needs."},
    {"interrupted", "A signal stopped the measurement. The figures are of what was done until then."},
};
constexpr std::string_view verdict_name(Verdict verdict) {
  return kVerdicts[size_t(verdict)][0];
}
constexpr std::string_view verdict_meaning(Verdict verdict) {
  return kVerdicts[size_t(verdict)][1];
}
// The exit code for this verdict (docs/reference/records.md).
constexpr int verdict_exit_code(Verdict verdict) {
  if (verdict <= Verdict::degraded) return 0;  // the figures of the record can be used
  return verdict == Verdict::skipped ? 77 : 1;
}
// Adds one more verdict on the same cell. `verdict` becomes the worse of the two, with its reason. If the
// exit code of the worse verdict is 0, its reason also names the other verdict: "3 samples were skipped; also
// client_bound: ...". Of two equal verdicts the first reason is kept.
void add_verdict(Verdict& verdict, std::string& reason, Verdict added, std::string_view added_reason);

struct Metric {
  std::string unit;  // "B/s", "s", "ns", "1/s", "1", "B"
  Better better = Better::higher;
  std::string per;              // what one sample is: "repeat", "step", "run"
  std::vector<double> samples;  // raw values, in order; a value that is not finite is null in JSON
  bool headline = false;        // whether `compare` uses this metric by default
  double value() const;         // the median of the samples
};

// Amounts over time, one in each interval.
struct Series {
  double interval_s = 1.0;
  std::vector<double> values;
  // How long each interval was. Empty: each was interval_s long, except that the last may have been shorter.
  std::vector<double> lengths_s = {};

  // A second that lacks no more than this is whole, because the last sample may end a little early.
  static constexpr double kSecondTolerance_s = 0.01;
  // Adds the amounts of each second of a run that lasted `wall_s`. What is left of the run after its last
  // whole second belongs to that second's interval, which is longer then. So the series adds up to the run,
  // and no interval is so short that its rate means nothing.
  void append_seconds(std::span<const double> by_second, double wall_s);
  // The rate in each interval whose length is known.
  std::vector<double> rates() const;
  std::vector<double> ends_s() const;  // when each of these intervals ends
};

struct Record {
  int schema = 1;
  std::string id;
  std::string started;  // time of the start in UTC, as ISO 8601
  std::string command;
  std::vector<std::string> argv;
  std::map<std::string, std::string> label;
  uint64_t seed = 0;
  Json parameters = Json::object();
  // The names of the parameters that identify what was measured (results/record/work.hpp). Absent in records
  // of earlier versions.
  std::optional<std::vector<std::string>> work;
  Json tiers = Json::object();        // role ("data", "checkpoint", "burst_buffer") -> facts (tier_json)
  Json cache = Json::object();        // made by cache_json()
  Json corpus = Json::object();       // made by corpus_json() (datagen/corpus/corpus.hpp)
  Json environment = Json::object();  // made by inspect_environment()
  std::map<std::string, Metric> metrics;
  std::map<std::string, Series> series;
  Json pair = Json::object();
  Verdict verdict = Verdict::ok;
  std::string reason;
};

// Adds one more raw sample to a metric. The first sample of a metric also sets its unit, direction, "per" and
// headline. If the metric is a family, its name has a star, which `part` replaces.
void add_sample(Record& record, const MetricInfo& metric, double value);
void add_sample(Record& record, const MetricInfo& family, std::string_view part, double value);
// Whether `table` declares a metric of this name with the same unit, direction, "per" and headline.
bool is_declared(std::string_view name, const Metric& metric, std::span<const MetricInfo> table);

Json to_json(const Record& record);
std::string record_line(const Record& record);  // the JSON in one line, no newline; always UTF-8

// Writes the records of one run into a new file and returns its path. The file is durable then. Makes the
// folder if it is missing. The name of the file is made from `command` and from the `started` and `id` of the
// first record; if that name is taken, another id is tried.
// After an error there is no file that a reader could take for records, with one exception: if the step
// "sync_dir" fails, the whole file is there.
Result<std::filesystem::path> write_records(const std::filesystem::path& folder,
                                            std::span<const Record> records, const FileStepHook& hook = {});

// Makes the folder if it is missing. Syncs the parent folder, so that the new folder survives a power
// failure.
Result<void> make_results_folder(const std::filesystem::path& folder);

// Checks, before a measurement, that write_records() will be able to make its file in `folder`. Permissions
// alone do not show this, so it makes a file and removes it again. If `folder` is missing, it makes the
// missing folders under a unique name and tests in the innermost; these are removed, too. Several processes
// may do this at the same time.
Result<void> check_results_folder(const std::filesystem::path& folder);

// Returns `record`, a JSON object in one line, with its seal. The seal says that this is line number `line`
// (from 1) of `lines` lines.
std::string seal_line(std::string_view record, size_t line, size_t lines);

// The text with which a sealed line ends. It has the CRC32C of `text`, which is the whole line up to there.
std::string seal_checksum(std::string_view text);
inline constexpr std::string_view kChecksumBegin = R"(,"crc32c":")";
inline constexpr std::string_view kChecksumEnd = R"("}})";

}  // namespace penstock
