#include "results/cells/headlines.hpp"

#include <algorithm>
#include <iterator>

#include "results/import/foreign.hpp"

namespace penstock {

std::span<const MetricInfo> metrics_of(std::string_view command, Commands commands) {
  for (const CommandInfo* const info : commands)
    if (info->name == command) return info->metrics;
  const Importer* const importer = find_importer(command);
  return importer == nullptr ? std::span<const MetricInfo>() : importer->metrics;
}

void Headlines::add(const Record& record) {
  bool has_marks = false;
  for (const auto& [name, metric] : record.metrics)
    if (metric.headline) {
      marked_names_.insert(name);
      has_marks = true;
    }
  if (has_marks || !table_headlines_.empty()) return;
  std::copy_if(table_.begin(), table_.end(), std::back_inserter(table_headlines_),
               [](const MetricInfo& metric) { return metric.headline; });
}

bool Headlines::contains(std::string_view metric) const {
  if (marked_names_.empty() && table_headlines_.empty()) return true;
  return marked_names_.contains(metric) ||
         std::any_of(table_headlines_.begin(), table_headlines_.end(),
                     [&](const MetricInfo& headline) { return headline.matches(metric); });
}

std::string first_metric(const Record& record, std::span<const MetricInfo> table) {
  for (const MetricInfo& declared : table)
    for (const auto& [name, metric] : record.metrics)
      if (metric.better != Better::neither && declared.matches(name)) return name;
  std::string any_metric;
  for (const auto& [name, metric] : record.metrics) {
    if (metric.better == Better::neither) continue;
    if (metric.headline) return name;
    if (any_metric.empty()) any_metric = name;
  }
  return any_metric;
}

std::vector<std::string> shown_metrics(const Record& record, std::span<const MetricInfo> table) {
  constexpr size_t kMost = 4;
  std::vector<std::string> names{first_metric(record, table)};
  const auto first = record.metrics.find(names.front());
  if (first == record.metrics.end() || !first->second.headline) return names;
  for (const MetricInfo& declared : table)
    if (declared.headline && declared.better != Better::neither && declared.unit != "1" &&
        declared.name != names.front() && record.metrics.contains(std::string(declared.name)) &&
        names.size() < kMost)
      names.emplace_back(declared.name);
  return names;
}

}  // namespace penstock
