#include "results/export/export_google.hpp"

#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "io_backends/core/json.hpp"
#include "results/cells/cells.hpp"
#include "results/export/export_cells.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

constexpr double kMiB = 1048576;
constexpr double kMostThreads = 1e9;

// Converts a sample to seconds by the rules in export_google.hpp. Absent if the value is not finite, if
// neither direction is better, or if the unit is unknown.
std::optional<double> seconds_of(const Metric& metric, double sample) {
  if (!std::isfinite(sample) || metric.better == Better::neither) return std::nullopt;
  if (metric.unit == "s") return sample;
  if (metric.unit == "ns") return sample * 1e-9;
  if (sample <= 0) return std::nullopt;
  if (metric.unit == "B/s") return kMiB / sample;
  if (metric.unit == "1/s") return 1 / sample;
  return std::nullopt;
}

Json entry_of(const std::string& name, const Record& record, size_t index) {
  Json entry{{"name", name},
             {"family_index", 0},
             {"per_family_instance_index", 0},
             {"run_name", name},
             {"run_type", "iteration"},
             {"repetitions", 1},
             {"repetition_index", index}};
  const auto threads = parameter_number(record, "threads");
  entry["threads"] = threads && *threads >= 1 && *threads <= kMostThreads ? uint64_t(*threads) : 1U;
  return entry;
}

void add_times(Json& entry, double seconds) {
  entry["iterations"] = 1;
  entry["real_time"] = seconds;
  entry["cpu_time"] = seconds;
  entry["time_unit"] = "s";
}

void add_metric(Json& benchmarks, const ExportCell& cell, const std::string& metric) {
  Json repetitions = Json::array();
  const std::string name = cell.name + "/" + metric;
  for (const Record* record : cell.records) {
    const Metric* const found = is_usable(*record) ? find_metric(*record, metric) : nullptr;
    if (found == nullptr) continue;
    for (const double sample : found->samples) {
      const auto seconds = seconds_of(*found, sample);
      if (!seconds) continue;
      Json entry = entry_of(name, *record, repetitions.size());
      add_times(entry, *seconds);
      if (found->unit == "B/s") entry["bytes_per_second"] = sample;
      if (found->unit == "1/s") entry["items_per_second"] = sample;
      repetitions.push_back(std::move(entry));
    }
  }
  for (Json& entry : repetitions) {
    entry["repetitions"] = repetitions.size();
    benchmarks.push_back(std::move(entry));
  }
}

void add_failures(Json& benchmarks, const ExportCell& cell) {
  size_t index = 0;
  for (const Record* record : cell.records) {
    if (is_usable(*record)) continue;
    Json entry = entry_of(cell.name, *record, index++);
    entry["error_occurred"] = true;
    entry["error_message"] = std::string(verdict_name(record->verdict)) + ": " + record->reason;
    add_times(entry, 0);
    benchmarks.push_back(std::move(entry));
  }
}

Json context_of(const RecordSet& set) {
  Json context{
      {"date", ""}, {"host_name", ""}, {"executable", "penstock"}, {"num_cpus", 1}, {"mhz_per_cpu", 0}};
  if (!set.records.empty()) {
    const Record& first = set.records.front().record;
    std::string date = first.started;
    if (date.ends_with('Z')) date.replace(date.size() - 1, 1, "+00:00");
    context["date"] = date;
    context["host_name"] = environment_text(first, "host");
    const Json* const processors = member(first.environment, "cpu_count");
    if (processors != nullptr && processors->is_number_unsigned()) context["num_cpus"] = *processors;
  }
  context["cpu_scaling_enabled"] = false;
  context["caches"] = Json::array();
  context["load_avg"] = Json::array();
  context["library_build_type"] = "release";
  return context;
}

}  // namespace

std::string google_benchmark_json(const RecordSet& set) {
  Json benchmarks = Json::array();
  uint64_t family_index = 0;
  for (const ExportCell& cell : export_cells(set)) {
    std::set<std::string> metrics;
    for (const Record* record : cell.records)
      for (const auto& [name, metric] : record->metrics) metrics.insert(name);
    const size_t size_before = benchmarks.size();
    for (const std::string& metric : metrics) add_metric(benchmarks, cell, metric);
    add_failures(benchmarks, cell);
    for (size_t i = size_before; i < benchmarks.size(); ++i) benchmarks[i]["family_index"] = family_index;
    if (benchmarks.size() > size_before) ++family_index;
  }
  const Json document{{"context", context_of(set)}, {"benchmarks", std::move(benchmarks)}};
  return indented(document, 2) + "\n";
}

}  // namespace penstock
