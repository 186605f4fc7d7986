#include "results/export/export_cells.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "results/cells/cells.hpp"
#include "results/record/json_members.hpp"
#include "results/record/shared_metrics.hpp"
#include "results/record/work.hpp"

namespace penstock {
namespace {

std::string without_slash(std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

std::string short_name(const Record& record) {
  std::string name = record.command;
  if (const std::string tier = measured_tier(record); !tier.empty()) name += "/" + without_slash(tier);
  for (const std::string& parameter : work_parameters(record))
    if (const std::string text = parameter == "tier" ? "" : work_text(record, parameter); !text.empty())
      name += "/" + parameter + ":" + without_slash(text);
  return name;
}

// Everything that may distinguish a cell from others: its work parameters and its labels, the corpus, the
// tiers, the host, and the arm of an interleaved run.
Json cell_parameters(const Record& record) {
  Json parameters = Json::object();
  for (const std::string& name : work_parameters(record)) parameters[name] = record.parameters.at(name);
  for (const auto& [key, value] : record.label) parameters["label." + key] = value;
  for (const auto& [role, facts] : record.tiers.items()) parameters["tier." + role] = role_name(record, role);
  parameters["corpus"] = corpus_text(record, "recipe");
  parameters["corpus.checksum"] = corpus_text(record, "checksum");
  parameters["host"] = environment_text(record, "host");
  parameters["pair.arm"] = member_text(record.pair, "arm");
  return parameters;
}

// If several cells have the same name, adds the parameters in which they differ to their names.
void distinguish_names(std::vector<ExportCell*>& cells) {
  std::vector<Json> parameters;
  for (const ExportCell* cell : cells) parameters.push_back(cell_parameters(*cell->records.front()));
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

}  // namespace

std::string measured_tier(const Record& record) {
  for (const std::string_view role : {"data", "checkpoint"})
    if (std::string name = role_name(record, role); !name.empty()) return name;
  return parameter_text(record, "tier");
}

std::vector<ExportCell> export_cells(const RecordSet& set) {
  std::vector<ExportCell> cells;
  // (name, parameters) -> index of the cell.
  std::map<std::pair<std::string, std::string>, size_t> cell_index;
  for (const StoredRecord& stored : set.records) {
    const std::string name = short_name(stored.record);
    const auto [at, fresh] =
        cell_index.emplace(std::pair(name, one_line(cell_parameters(stored.record))), cells.size());
    if (fresh) cells.push_back({name, {}});
    cells[at->second].records.push_back(&stored.record);
  }
  std::map<std::string, std::vector<ExportCell*>> by_name;
  for (ExportCell& cell : cells) by_name[cell.name].push_back(&cell);
  for (auto& [name, same_name] : by_name)
    if (same_name.size() > 1) distinguish_names(same_name);
  return cells;
}

ExportedMetrics::ExportedMetrics(const RecordSet& set, Commands commands) : commands_(commands) {
  for (const StoredRecord& stored : set.records) {
    const std::string& command = stored.record.command;
    headlines_.try_emplace(command, metrics_of(command, commands)).first->second.add(stored.record);
  }
}

bool ExportedMetrics::is_headline(const Record& record, std::string_view metric) const {
  const auto at = headlines_.find(record.command);
  return at != headlines_.end() && at->second.contains(metric);
}

bool ExportedMetrics::is_listed(const Record& record, std::string_view metric) const {
  const auto& rates = shared_metrics::kThroughputMetrics;
  if (is_headline(record, metric) || std::find(std::begin(rates), std::end(rates), metric) != std::end(rates))
    return true;
  const std::span<const MetricInfo> table = metrics_of(record.command, commands_);
  return std::any_of(table.begin(), table.end(), [&](const MetricInfo& declared) {
    return declared.percent > 0 && declared.matches(metric);
  });
}

Metric joined_metric(const ExportCell& cell, const std::string& metric) {
  Metric joined;
  for (const Record* const record : cell.records) {
    const Metric* const found = is_usable(*record) ? find_metric(*record, metric) : nullptr;
    if (found == nullptr || (!joined.samples.empty() && joined.unit != found->unit)) continue;
    const std::vector<double> before = std::move(joined.samples);
    joined = *found;
    joined.samples.insert(joined.samples.begin(), before.begin(), before.end());
  }
  return joined;
}

}  // namespace penstock
