#include "results/export/export_google.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "io_backends/core/json.hpp"
#include "results/cells/cells.hpp"
#include "results/record/json_members.hpp"
#include "results/record/work.hpp"

namespace penstock {
namespace {

constexpr double kMiB = 1048576;
constexpr double kMostThreads = 1e9;

struct Cell {
  std::string name;
  std::vector<const Record*> records;  // the cell's records, in the order of the record set
};

std::string without_slash(std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

std::string short_name(const Record& record) {
  std::string name = record.command;
  if (const std::string tier = parameter_text(record, "tier"); !tier.empty())
    name += "/" + without_slash(tier);
  for (const std::string& parameter : work_parameters(record))
    if (const std::string text = parameter == "tier" ? "" : work_text(record, parameter); !text.empty())
      name += "/" + parameter + ":" + without_slash(text);
  return name;
}

// Everything that may distinguish a cell from others: its work parameters and its labels.
Json cell_parameters(const Record& record) {
  Json parameters = Json::object();
  for (const std::string& name : work_parameters(record)) parameters[name] = record.parameters.at(name);
  for (const auto& [key, value] : record.label) parameters["label." + key] = value;
  return parameters;
}

// If several cells have the same name, adds the parameters in which they differ to their names.
void distinguish_names(std::vector<Cell*>& cells) {
  std::vector<Json> parameters;
  for (const Cell* cell : cells) parameters.push_back(cell_parameters(*cell->records.front()));
  std::map<std::string, std::vector<std::string>> values;  // parameter -> its value in each cell
  for (const Json& one : parameters)
    for (const auto& [key, value] : one.items()) values[key].resize(cells.size());
  for (auto& [key, of_cells] : values)
    for (size_t i = 0; i < cells.size(); ++i) of_cells[i] = member_any_text(parameters[i], key);
  for (const auto& [key, of_cells] : values)
    if (std::set<std::string>(of_cells.begin(), of_cells.end()).size() > 1)
      for (size_t i = 0; i < cells.size(); ++i)
        cells[i]->name += "/" + key + ":" + without_slash(of_cells[i]);
}

std::vector<Cell> cells_of(const RecordSet& set) {
  std::vector<Cell> cells;
  // (name, parameters) -> index of the cell.
  std::map<std::pair<std::string, std::string>, size_t> cell_index;
  for (const StoredRecord& stored : set.records) {
    const std::string name = short_name(stored.record);
    const auto [at, fresh] =
        cell_index.emplace(std::pair(name, cell_parameters(stored.record).dump()), cells.size());
    if (fresh) cells.push_back({name, {}});
    cells[at->second].records.push_back(&stored.record);
  }
  std::map<std::string, std::vector<Cell*>> by_name;
  for (Cell& cell : cells) by_name[cell.name].push_back(&cell);
  for (auto& [name, same_name] : by_name)
    if (same_name.size() > 1) distinguish_names(same_name);
  return cells;
}

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

void add_metric(Json& benchmarks, const Cell& cell, const std::string& metric) {
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

void add_failures(Json& benchmarks, const Cell& cell) {
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
  for (const Cell& cell : cells_of(set)) {
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
