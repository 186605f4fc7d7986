#include "results/cells/headlines.hpp"

#include <algorithm>
#include <iterator>

#include "results/import/foreign.hpp"

namespace penstock {

std::span<const MetricInfo> metrics_of(std::string_view command, Commands commands) {
  for (const CommandInfo* const info : commands)
    if (info->name == command) return info->metrics;
  if (command == "google_benchmark") return google_benchmark_metrics();
  if (command == "fio") return fio_metrics();
  return {};
}

void Headlines::add(const Record& record) {
  bool has_marks = false;
  for (const auto& [name, metric] : record.metrics)
    if (metric.headline) {
      marked_.insert(name);
      has_marks = true;
    }
  if (has_marks || !declared_.empty()) return;
  std::copy_if(table_.begin(), table_.end(), std::back_inserter(declared_),
               [](const MetricInfo& metric) { return metric.headline; });
}

bool Headlines::contains(std::string_view metric) const {
  if (marked_.empty() && declared_.empty()) return true;
  return marked_.contains(metric) ||
         std::any_of(declared_.begin(), declared_.end(),
                     [&](const MetricInfo& declared) { return declared.matches(metric); });
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

}  // namespace penstock
