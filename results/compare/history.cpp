#include "results/compare/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "results/cells/cells.hpp"
#include "results/compare/matched_cells.hpp"
#include "results/compare/significance.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

// The records of one cell, machine and arm, one for each run, in order of time.
struct RunSeries {
  std::string name;
  std::vector<const StoredRecord*> records;
};

std::vector<RunSeries> series_of(const RecordSet& set, std::vector<std::string>& remarks) {
  std::vector<const Record*> records;
  std::map<const Record*, const StoredRecord*> stored;
  std::set<std::string> hosts;
  for (const StoredRecord& one : set.records) {
    if (!is_usable(one.record)) continue;
    records.push_back(&one.record);
    stored[&one.record] = &one;
    hosts.insert(environment_text(one.record, "host"));
  }
  MatchedCells matched = match_cells(records, {});
  remarks = std::move(matched.remarks);
  std::vector<RunSeries> series;
  for (const Cell& cell : matched.cells) {
    std::map<std::pair<std::string, std::string>, RunSeries> by_host_and_arm;
    for (const Record* const record : cell.base) {
      const std::string host = environment_text(*record, "host");
      const std::string arm = arm_of(*record);
      RunSeries& one_series = by_host_and_arm[{host, arm}];
      one_series.name =
          cell.name + (hosts.size() > 1 ? " on " + host : "") + (arm.empty() ? "" : ", arm " + arm);
      one_series.records.push_back(stored[record]);
    }
    for (auto& [key, part] : by_host_and_arm) {
      std::stable_sort(
          part.records.begin(), part.records.end(),
          [](const StoredRecord* a, const StoredRecord* b) { return a->record.started < b->record.started; });
      series.push_back(std::move(part));
    }
  }
  return series;
}

// Makes the row of one metric of a series. The latest record decides the unit and the direction of the
// metric; runs with another unit or direction are left out. Returns nothing if no run has the metric, or if
// neither direction of it is better. The caller later adjusts p and `changed` for the number of all series.
std::optional<HistoryRow> row_of(const RunSeries& series, const std::string& metric,
                                 const CompareSettings& settings) {
  const Metric* newest = nullptr;
  for (const StoredRecord* const stored : series.records)
    if (const Metric* const found = find_metric(stored->record, metric)) newest = found;
  if (newest == nullptr || newest->better == Better::neither) return std::nullopt;
  std::vector<const StoredRecord*> runs;
  std::vector<double> values;
  for (const StoredRecord* const stored : series.records) {
    const Metric* const found = find_metric(stored->record, metric);
    if (found == nullptr || found->unit != newest->unit || found->better != newest->better) continue;
    runs.push_back(stored);
    values.push_back(found->value());
  }
  HistoryRow row;
  row.cell = series.name;
  row.metric = metric;
  row.unit = newest->unit;
  row.better = newest->better;
  row.runs = runs.size();
  row.change = find_change(values);
  if (!row.change) return row;
  const StoredRecord& since = *runs[row.change->index];
  row.first_changed_run = since.record.started + ", " + since.file.string();
  const double before = row.change->median_before;
  const double after = row.change->median_after;
  row.is_worse = newest->better == Better::higher ? after < before : after > before;
  row.changed = std::abs(after - before) >= settings.least_effect * std::abs(before) && after != before;
  return row;
}

}  // namespace

Result<History> inspect_history(const RecordSet& set, const CompareSettings& settings) {
  History history;
  if (set.records.empty()) return make_error(Errc::invalid_argument, "there are no records to compare");
  if (!(settings.alpha > 0 && settings.alpha < 0.5))
    return make_error(Errc::invalid_argument, "--alpha must be a probability between 0 and 0.5");
  std::vector<double> p;
  for (const RunSeries& series : series_of(set, history.remarks)) {
    std::set<std::string> metrics;
    Headlines headlines(metrics_of(series.records.front()->record.command, settings.commands));
    for (const StoredRecord* const stored : series.records) {
      headlines.add(stored->record);
      for (const auto& [name, metric] : stored->record.metrics) metrics.insert(name);
    }
    for (const std::string& metric : metrics) {
      if (!settings.selects(metric, headlines)) continue;
      if (auto row = row_of(series, metric, settings)) {
        if (row->change) p.push_back(row->change->p);
        history.rows.push_back(*std::move(row));
      }
    }
  }
  if (history.rows.empty())
    return make_error(Errc::invalid_argument,
                      "no usable record has a metric to compare; to choose metrics: --metric");
  const std::vector<double> adjusted = holm(p, p.size());
  size_t next_adjusted = 0;
  size_t suspected_count = 0;
  for (HistoryRow& row : history.rows) {
    if (!row.change) continue;
    row.p = adjusted[next_adjusted++];
    const bool significant_alone = row.changed && row.change->p <= settings.alpha;
    row.changed = significant_alone && row.p <= settings.alpha;
    row.suspected = significant_alone && !row.changed;
    suspected_count += row.suspected ? 1U : 0U;
  }
  if (suspected_count > 0)
    history.remarks.push_back(
        fmt::format("{} of {} series would count as changed if tested alone; chance alone causes up to "
                    "{:.2g} of them. To test fewer series: --metric, or fewer results",
                    suspected_count, p.size(), settings.alpha * double(p.size())));
  std::stable_sort(history.rows.begin(), history.rows.end(), [](const HistoryRow& a, const HistoryRow& b) {
    const auto rank = [](const HistoryRow& row) {
      if (!row.changed && !row.suspected) return 4;
      return (row.changed ? 0 : 2) + (row.is_worse ? 0 : 1);
    };
    return rank(a) < rank(b);
  });
  history.remarks.insert(history.remarks.end(), set.problems.begin(), set.problems.end());
  return history;
}

}  // namespace penstock
