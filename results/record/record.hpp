// A record: one measured cell with everything that a reader needs to trust it. Also writes the files of
// records. Field names are a contract (docs/records.md).
//
// A record file has the records of one run, and never changes: `<utc time>-<command>-<short id>.jsonl`, with
// one sealed record in each line. It appears whole or not at all (write_durable_file()).
//
// The seal of a line has the number of the line, the number of lines of its run, and the CRC32C of all text
// before it. It is the last member of the record's own JSON object, so that every line is still a record:
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

#include "io_backends/core/json_text.hpp"
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
std::string_view verdict_name(Verdict verdict);
int verdict_exit_code(Verdict verdict);  // the exit code for this verdict: 0, 1 or 77 (docs/records.md)
// Adds one more verdict on the same cell. The worst verdict stays, with its reason. If even that one allows
// figures in the record, the reason also names the lesser verdict: "3 samples were skipped; also
// client_bound: ...".
void add_verdict(Verdict& verdict, std::string& reason, Verdict added, std::string_view added_reason);

struct Metric {
  std::string unit;  // "B/s", "s", "ns", "1/s", "1", "B"
  Better better = Better::higher;
  std::string per;              // what one sample is: "repeat", "step", "run"
  std::vector<double> samples;  // raw values, in order; a value that is not finite is null in JSON
  bool headline = false;        // whether `compare` uses this metric by default
  double value() const;         // the median of the samples
};

struct Series {
  double interval_s = 1.0;
  std::vector<double> values;
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
  // The names of the parameters that identify what was measured (results/record/work.hpp). Records of earlier
  // versions do not have them.
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

// Adds one more raw sample to a metric. The first sample of a metric sets its unit, direction, "per" and
// headline. If the metric is a family (its name has a star), `part` replaces the star.
void add_sample(Record& record, const MetricInfo& metric, double value);
void add_sample(Record& record, const MetricInfo& family, std::string_view part, double value);
// Whether `table` declares a metric of this name with the same unit, direction, "per" and headline.
bool is_declared(std::string_view name, const Metric& metric, std::span<const MetricInfo> table);

Json to_json(const Record& record);
std::string record_line(const Record& record);  // the JSON in one line, no newline; always UTF-8

// Writes the records of one run, and returns the path of the file, which is then durable. Makes the folder if
// it is missing. The file's name is made from `command` and the first record's `started` and `id`; if the
// name is taken, another id is tried. After an error there is no file that a reader could take for records,
// with one exception: if "sync_dir" fails, the whole file is in place.
Result<std::filesystem::path> write_records(const std::filesystem::path& folder,
                                            std::span<const Record> records, const FileStepHook& hook = {});

// Makes the folder if it is missing. Syncs its parent, so that the new name is durable too.
Result<void> make_results_folder(const std::filesystem::path& folder);

// Checks, before a measurement, that write_records() will be able to make its file in `folder`. Permissions
// alone do not show what a file system accepts. So this makes the missing folders under a unique name, with
// an empty file in the innermost, and removes them again. Several processes may do this at the same time.
Result<void> check_results_folder(const std::filesystem::path& folder);

// Returns `record`, a JSON object in one line, with its seal: it is line number `line` (from 1) of `lines`
// lines.
std::string seal_line(std::string_view record, size_t line, size_t lines);

// The text with which a sealed line ends: it has the CRC32C of `text`, which is everything before it.
std::string seal_checksum(std::string_view text);
inline constexpr std::string_view kChecksumBegin = R"(,"crc32c":")";
inline constexpr std::string_view kChecksumEnd = R"("}})";

}  // namespace penstock
