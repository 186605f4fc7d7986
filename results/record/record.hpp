// A record: one measured cell with everything that a reader needs to trust it. Field names are a contract
// (docs/records.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/json_text.hpp"
#include "io_backends/core/metric.hpp"

namespace penstock {

// In order from harmless to fatal.
enum class Verdict : std::uint8_t {
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
int verdict_exit_code(Verdict verdict);  // 0, 1 or 77 (docs/records.md)
// Adds one more verdict on the same cell: the worst one wins, with its reason. If the worst still leaves a
// number, the lesser verdict is added to the reason: "3 samples were skipped; also client_bound: ...".
void judge(Verdict& verdict, std::string& reason, Verdict what, std::string_view why);

struct Metric {
  std::string unit;  // "B/s", "s", "ns", "1/s", "1", "B"
  Better better = Better::higher;
  std::string per;              // what one sample is: "repeat", "step", "run"
  std::vector<double> samples;  // raw, in order; a sample that is not finite is null in JSON
  bool headline = false;        // MetricInfo::headline
  double value() const;         // the median
};

struct Series {
  double interval_s = 1.0;
  std::vector<double> values;
};

struct Record {
  int schema = 1;
  std::string id;
  std::string started;  // UTC, ISO 8601
  std::string command;
  std::vector<std::string> argv;
  std::map<std::string, std::string> label;
  std::uint64_t seed = 0;
  Json parameters = Json::object();
  // The names of the parameters that identify what was measured (results/record/work.hpp). Older files do not
  // have them.
  std::optional<std::vector<std::string>> work;
  Json tiers = Json::object();        // role ("data", "checkpoint", "burst_buffer") -> facts (tier_json)
  Json cache = Json::object();        // cache_json
  Json corpus = Json::object();       // corpus_json (datagen/corpus/corpus.hpp)
  Json environment = Json::object();  // environment.hpp
  std::map<std::string, Metric> metrics;
  std::map<std::string, Series> series;
  Json pair = Json::object();
  Verdict verdict = Verdict::ok;
  std::string reason;
};

// Adds one more raw sample. The first sample of a metric fixes its unit, direction, "per" and headline. For a
// family, `part` replaces the star in the metric's name.
void add_sample(Record& record, const MetricInfo& metric, double value);
void add_sample(Record& record, const MetricInfo& family, std::string_view part, double value);
// Whether `table` declares this metric with the same unit, direction, "per" and headline.
bool is_declared(std::string_view name, const Metric& metric, std::span<const MetricInfo> table);

Json to_json(const Record& record);
std::string record_line(const Record& record);  // the JSON in one line, no newline; always UTF-8

}  // namespace penstock
