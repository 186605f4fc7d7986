// Google Benchmark: one record for each run, with its repetitions as samples. Metrics are `real_time_s` and
// `cpu_time_s` (of one iteration), `payload_bytes_per_s` (its bytes_per_second), `samples_per_s` (its
// items_per_second), and its other counters under their own names. Aggregates are left out, since they are
// computed from the samples.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "results/import/import_parts.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

// The members that every entry may have. Any other number is a counter.
constexpr std::array<std::string_view, 17> kStandardMembers{"family_index",  "per_family_instance_index",
                                                            "repetitions",   "repetition_index",
                                                            "threads",       "iterations",
                                                            "real_time",     "cpu_time",
                                                            "time_unit",     "name",
                                                            "run_name",      "run_type",
                                                            "label",         "error_occurred",
                                                            "error_message", "skipped",
                                                            "skip_message"};
constexpr double kMostThreads = 1e9;
constexpr std::array<std::string_view, 6> kAggregateNames{"_mean", "_median", "_stddev",
                                                          "_cv",   "_BigO",   "_RMS"};

std::optional<double> seconds_of(std::string_view unit) {
  if (unit.empty() || unit == "ns") return 1e-9;
  if (unit == "us") return 1e-6;
  if (unit == "ms") return 1e-3;
  if (unit == "s") return 1.0;
  return std::nullopt;
}

// Whether an entry is an aggregate, such as a mean. Early versions do not mark aggregates. So "BM_x_mean"
// also counts as an aggregate if "BM_x" exists.
bool is_aggregate(const Json& entry, const std::set<std::string>& names) {
  if (const std::string type = member_text(entry, "run_type"); !type.empty()) return type != "iteration";
  const std::string name = member_text(entry, "name");
  return std::any_of(kAggregateNames.begin(), kAggregateNames.end(), [&](std::string_view end) {
    return name.ends_with(end) && names.contains(name.substr(0, name.size() - end.size()));
  });
}

std::string run_name(const Json& entry) {
  const std::string name = member_text(entry, "run_name");
  return name.empty() ? member_text(entry, "name") : name;
}

// Whether the aggregate belongs to `run`. An aggregate can be of this run, or of all runs of its family. For
// example, the aggregate "BM_x" (complexity) belongs to "BM_x/8" and "BM_x/64".
bool belongs_to(const std::string& run, const std::string& aggregate) {
  return run == aggregate || run.starts_with(aggregate + "/");
}

Record record_of(const Json& context, const std::string& name, const Json& entry) {
  Record record;
  record.command = "google_benchmark";
  record.started = imported::utc_of_date(member_text(context, "date"));
  if (const std::string program = member_text(context, "executable"); !program.empty())
    record.argv.push_back(program);
  const std::string version = member_text(context, "library_version");
  record.label["peer"] = "google-benchmark" + (version.empty() ? "" : "-" + version);
  record.parameters["benchmark"] = name;
  const double threads = member_number(entry, "threads").value_or(1);
  record.parameters["threads"] = threads >= 1 && threads <= kMostThreads ? uint64_t(threads) : 1U;
  if (const std::string label = member_text(entry, "label"); !label.empty())
    record.parameters["label"] = label;
  if (const std::string host = member_text(context, "host_name"); !host.empty())
    record.environment["host"] = host;
  if (const Json* const processors = member(context, "num_cpus");
      processors != nullptr && processors->is_number())
    record.environment["cpu_count"] = *processors;
  if (const std::string type = member_text(context, "library_build_type"); !type.empty())
    record.environment["build"] = Json{{"library_type", type}};
  if (!version.empty()) record.environment["versions"] = Json{{"google-benchmark", version}};
  return record;
}

constexpr MetricInfo kRealTime{"real_time_s", "s", Better::lower, "repeat", kHeadline};
constexpr MetricInfo kCpuTime{"cpu_time_s", "s", Better::lower, "repeat", kHeadline};
constexpr MetricInfo kPayloadRate{"payload_bytes_per_s", "B/s", Better::higher, "repeat"};
constexpr MetricInfo kSampleRate{"samples_per_s", "1/s", Better::higher, "repeat"};
constexpr MetricInfo kCounter{"*", "1", Better::neither, "repeat"};
constexpr MetricInfo kMetrics[] = {kRealTime, kCpuTime, kPayloadRate, kSampleRate, kCounter};

void add_counters(Record& record, const Json& entry) {
  for (const auto& [name, value] : entry.items()) {
    if (!value.is_number() ||
        std::find(kStandardMembers.begin(), kStandardMembers.end(), name) != kStandardMembers.end())
      continue;
    if (name == "bytes_per_second") {
      add_sample(record, kPayloadRate, value.get<double>());
    } else if (name == "items_per_second") {
      add_sample(record, kSampleRate, value.get<double>());
    } else {
      add_sample(record, kCounter, name, value.get<double>());
    }
  }
}

void add_repetition(Record& record, const Json& entry) {
  const bool failed = member_true(entry, "error_occurred");
  if (failed || member_true(entry, "skipped")) {
    const std::string reason = member_text(entry, failed ? "error_message" : "skip_message");
    add_verdict(record.verdict, record.reason, failed ? Verdict::failed : Verdict::skipped,
                reason.empty() ? "no reason given" : reason);
    return;
  }
  const auto unit = seconds_of(member_text(entry, "time_unit"));
  if (!unit) {
    add_verdict(record.verdict, record.reason, Verdict::failed,
                fmt::format("unknown time unit '{}'", member_text(entry, "time_unit")));
    return;
  }
  if (!member_number(entry, "real_time") && !member_number(entry, "cpu_time")) {
    add_verdict(record.verdict, record.reason, Verdict::failed, "it has no time");
    return;
  }
  if (const auto time = member_number(entry, "real_time")) add_sample(record, kRealTime, *time * *unit);
  if (const auto time = member_number(entry, "cpu_time")) add_sample(record, kCpuTime, *time * *unit);
  add_counters(record, entry);
}

bool is_google_benchmark(const Json& json) {
  const Json* const entries = member(json, "benchmarks");
  const Json* const context = member(json, "context");
  return entries != nullptr && entries->is_array() && context != nullptr && context->is_object();
}

void import_google_benchmark(const Json& json, const std::string& id, Imported& imported) {
  const size_t first = imported.records.size();
  const Json& context = json.at("context");
  std::set<std::string> names;
  for (const Json& entry : json.at("benchmarks")) names.insert(member_text(entry, "name"));
  std::vector<std::string> run_names;        // the name of each record's run
  std::vector<std::string> aggregated_runs;  // run names that have aggregates
  for (const Json& entry : json.at("benchmarks")) {
    const std::string name = run_name(entry);
    if (name.empty()) {
      imported.problems.emplace_back("an entry of 'benchmarks' has no name");
      continue;
    }
    if (is_aggregate(entry, names)) {
      const bool is_known =
          std::find(aggregated_runs.begin(), aggregated_runs.end(), name) != aggregated_runs.end();
      if (!is_known && !member_text(entry, "run_name").empty()) aggregated_runs.push_back(name);
      continue;
    }
    const auto at = std::find(run_names.begin(), run_names.end(), name);
    if (at == run_names.end()) {
      run_names.push_back(name);
      imported.records.push_back(record_of(context, name, entry));
      imported.records.back().id = fmt::format("{}-{}", id, run_names.size() - 1);
      add_repetition(imported.records.back(), entry);
    } else {
      add_repetition(imported.records[first + size_t(at - run_names.begin())], entry);
    }
  }
  for (const std::string& name : aggregated_runs)
    if (std::none_of(run_names.begin(), run_names.end(),
                     [&](const std::string& run) { return belongs_to(run, name); }))
      imported.problems.push_back(
          fmt::format("of '{}' there are aggregates alone: without its repetitions nothing can be compared "
                      "(--benchmark_report_aggregates_only=false)",
                      name));
}

}  // namespace

const Importer importer_google_benchmark{.command = "google_benchmark",
                                         .program = "Google Benchmark",
                                         .form = "--benchmark_out_format=json",
                                         .metrics = kMetrics,
                                         .is_document = is_google_benchmark,
                                         .import_document = import_google_benchmark};

}  // namespace penstock
