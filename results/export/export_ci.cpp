#include "results/export/export_ci.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <set>

#include "io_backends/core/json.hpp"
#include "results/cells/cells.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

// Calls `visitor` for each headline of each cell that has a sample of it.
void for_each_headline(
    const RecordSet& set, const ExportedMetrics& metrics,
    const std::function<void(const ExportCell&, const std::string& name, const Metric& joined)>& visitor) {
  for (const ExportCell& cell : export_cells(set)) {
    std::set<std::string> names;
    for (const Record* const record : cell.records)
      for (const auto& [name, metric] : record->metrics)
        if (metrics.is_headline(*record, name)) names.insert(name);
    for (const std::string& name : names) {
      const Metric joined = joined_metric(cell, name);
      if (!finite_samples(joined.samples).empty()) visitor(cell, name, joined);
    }
  }
}

// What explains the value to a reader of the chart: the number of samples, and where and by what it was made.
std::string extra_text(const ExportCell& cell, const Metric& joined, const RepeatRange& range) {
  const Record& last = *cell.records.back();
  return fmt::format("median of {}, range: {}\nverdict: {}\ncache: {}\nhost: {}\nstarted: {}",
                     finite_samples(joined.samples).size(), range_text(range.is_interval),
                     verdict_name(last.verdict), cache_state(last), environment_text(last, "host"),
                     last.started);
}

}  // namespace

std::string bencher_json(const RecordSet& set, const ExportedMetrics& metrics) {
  Json benchmarks = Json::object();
  for_each_headline(set, metrics, [&](const ExportCell& cell, const std::string& name, const Metric& joined) {
    Json& measure = benchmarks[cell.name][name];
    measure["value"] = joined.value();
    if (finite_samples(joined.samples).size() < 2) return;
    const RepeatRange range = repeat_range(joined);
    measure["lower_value"] = range.range.low;
    measure["upper_value"] = range.range.high;
  });
  return benchmarks.empty() ? "" : indented(benchmarks, 2) + "\n";
}

std::string github_json(const RecordSet& set, const ExportedMetrics& metrics, Better better) {
  Json entries = Json::array();
  for_each_headline(set, metrics, [&](const ExportCell& cell, const std::string& name, const Metric& joined) {
    if (joined.better != better) return;
    const RepeatRange range = repeat_range(joined);
    Json entry{{"name", cell.name + "/" + name}, {"unit", joined.unit}, {"value", joined.value()}};
    if (finite_samples(joined.samples).size() > 1)
      entry["range"] = fmt::format("{} to {}", range.range.low, range.range.high);
    entry["extra"] = extra_text(cell, joined, range);
    entries.push_back(std::move(entry));
  });
  return entries.empty() ? "" : indented(entries, 2) + "\n";
}

}  // namespace penstock
