#include "results/compare/comparison.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "results/cells/cells.hpp"
#include "results/compare/comparable.hpp"
#include "results/compare/compared_samples.hpp"
#include "results/compare/hodges_lehmann.hpp"
#include "results/compare/matched_cells.hpp"
#include "results/compare/significance.hpp"

namespace penstock {
namespace {

// A row whose outcome depends on the number of all tests, because p is adjusted by that number. It is decided
// after all rows are collected.
struct UndecidedRow {
  size_t row_index = 0;
  ComparedSamples samples;
  std::vector<double> differences;  // one for each pair of runs; a positive difference is worse
  // Logarithms, negated if a higher value is better, so that more is always worse.
  std::vector<double> base;
  std::vector<double> candidate;
  bool has_enough_values = false;
};

// Removes the records without usable numbers. Returns a text with how many were removed, and the verdict and
// reason of the first of them; "" if none was removed.
std::string remove_unusable(std::vector<const Record*>& records) {
  const size_t count_before = records.size();
  std::string first_problem;
  for (const Record* const record : records)
    if (!is_usable(*record) && first_problem.empty())
      first_problem = fmt::format("{}{}{}", verdict_name(record->verdict), record->reason.empty() ? "" : ": ",
                                  record->reason);
  std::erase_if(records, [](const Record* record) { return !is_usable(*record); });
  if (records.size() == count_before) return "";
  return count_before == 1 ? first_problem
                           : fmt::format("{} of {}: {}", count_before - records.size(),
                                         count_of(count_before, "run"), first_problem);
}

class Comparator {
 public:
  Comparator(const CompareSettings& settings, Comparison& comparison)
      : settings_(settings), comparison_(comparison) {}

  void add_cell(Cell cell);
  void decide();
  bool used_unpaired_test() const { return used_unpaired_test_; }
  const std::set<std::string>& metric_names() const { return metric_names_; }
  const std::set<std::string>& metrics_without_direction() const { return metrics_without_direction_; }

 private:
  ComparedMetric& add_row(const Cell& cell, const std::string& metric, GateOutcome outcome,
                          std::string reason);
  void add_metric(const Cell& cell, const std::string& name);
  void compare_counts(ComparedMetric& row, const ComparedSamples& samples);
  void prepare(UndecidedRow& undecided);
  void estimate(UndecidedRow& undecided);
  void set_outcome(const UndecidedRow& undecided, double worse, double better);

  const CompareSettings& settings_;
  Comparison& comparison_;
  std::vector<UndecidedRow> undecided_;
  std::set<std::string> metric_names_;
  // Metrics that the user requested, but of which neither a higher nor a lower value is better.
  std::set<std::string> metrics_without_direction_;
  bool used_unpaired_test_ = false;
};

ComparedMetric& Comparator::add_row(const Cell& cell, const std::string& metric, GateOutcome outcome,
                                    std::string reason) {
  ComparedMetric& row = comparison_.rows.emplace_back();
  row.cell = cell.name;
  row.metric = metric;
  row.outcome = outcome;
  row.reason = std::move(reason);
  return row;
}

void Comparator::add_cell(Cell cell) {
  const std::string base_problem = remove_unusable(cell.base);
  const bool base_has_cell = !cell.base.empty() || !base_problem.empty();
  const bool candidate_has_cell = !cell.candidate.empty();
  const std::string candidate_problem = remove_unusable(cell.candidate);
  if (!candidate_has_cell) {
    add_row(cell, "", GateOutcome::missing, "the candidate has no such cell");
    return;
  }
  if (!candidate_problem.empty()) add_row(cell, "", GateOutcome::failed, candidate_problem);
  if (cell.candidate.empty()) return;
  if (!base_has_cell) {
    add_row(cell, "", GateOutcome::added, "the base has no such cell");
    return;
  }
  if (cell.base.empty()) {
    add_row(cell, "", GateOutcome::inconclusive, "the base has no usable number: " + base_problem);
    return;
  }
  std::string difference = work_difference(cell);
  if (difference.empty() && !settings_.allow_other_machines) difference = machine_difference(cell);
  if (!difference.empty()) {
    add_row(cell, "", GateOutcome::incomparable, difference);
    return;
  }
  std::set<std::string> names;
  for (const Record* const record : cell.base)
    for (const auto& [name, metric] : record->metrics) names.insert(name);
  metric_names_.insert(names.begin(), names.end());
  const size_t rows_before = comparison_.rows.size();
  Headlines headlines(metrics_of(cell.base.front()->command, settings_.commands));
  for (const Record* const record : cell.base) headlines.add(*record);
  for (const Record* const record : cell.candidate) headlines.add(*record);
  for (const std::string& name : names)
    if (settings_.selects(name, headlines)) add_metric(cell, name);
  if (comparison_.rows.size() == rows_before && settings_.metrics.empty())
    add_row(cell, "", GateOutcome::inconclusive,
            "the base has no metric by which this command is compared (--metric names others)");
}

void Comparator::add_metric(const Cell& cell, const std::string& name) {
  const auto has_metric = [&](const Record* record) { return record->metrics.contains(name); };
  if (std::none_of(cell.candidate.begin(), cell.candidate.end(), has_metric)) {
    add_row(cell, name, GateOutcome::missing, "the candidate has no such metric");
    return;
  }
  std::string why;
  std::optional<ComparedSamples> samples = gather_samples(cell, name, why);
  if (!samples) {
    add_row(cell, name, GateOutcome::incomparable, why);
    return;
  }
  const auto negative = [](double value) { return value < 0; };
  const bool is_exact = is_count(*samples);
  if (!is_exact && samples->better == Better::neither) {
    if (!settings_.metrics.empty()) metrics_without_direction_.insert(name);
    return;
  }
  ComparedMetric& new_row = add_row(cell, name, GateOutcome::same, "");
  new_row.unit = samples->unit;
  new_row.base_samples = samples->base.size();
  new_row.candidate_samples = samples->candidate.size();
  new_row.base = median(samples->base);
  new_row.candidate = median(samples->candidate);
  if (samples->base.empty()) {
    new_row.outcome = GateOutcome::inconclusive;
    new_row.reason = "the base has no finite number";
  } else if (samples->candidate.empty()) {
    new_row.outcome = GateOutcome::failed;
    new_row.reason = "the candidate has no finite number";
  } else if (is_exact) {
    compare_counts(new_row, *samples);
  } else if (std::any_of(samples->base.begin(), samples->base.end(), negative) ||
             std::any_of(samples->candidate.begin(), samples->candidate.end(), negative)) {
    new_row.outcome = GateOutcome::incomparable;
    new_row.reason = "a number below zero has no ratio to another";
  } else {
    undecided_.push_back({comparison_.rows.size() - 1, *std::move(samples), {}, {}, {}, false});
  }
}

void Comparator::compare_counts(ComparedMetric& row, const ComparedSamples& samples) {
  row.is_exact_count = true;
  const double base_value = samples.base.front();
  if (base_value != 0) row.change = row.candidate / base_value - 1;
  size_t more_count = 0;
  size_t less_count = 0;
  double farthest = base_value;
  for (const double value : samples.candidate) {
    if (value > base_value) ++more_count;
    if (value < base_value) ++less_count;
    if (std::abs(value - base_value) > std::abs(farthest - base_value)) farthest = value;
  }
  if (more_count + less_count == 0) return;
  row.reason = fmt::format("{} of {} differ: {:.0f} instead of {:.0f}", more_count + less_count,
                           count_of(samples.candidate.size(), "sample"), farthest, base_value);
  const size_t worse_count = samples.better == Better::higher ? less_count : more_count;
  row.outcome = samples.better == Better::neither ? GateOutcome::differs
                : worse_count > 0                 ? GateOutcome::regression
                                                  : GateOutcome::better;
}

void Comparator::prepare(UndecidedRow& undecided) {
  ComparedMetric& row = comparison_.rows[undecided.row_index];
  const ComparedSamples& samples = undecided.samples;
  const double sign = samples.better == Better::higher ? -1 : 1;
  const size_t least = comparison_.least_samples;
  row.paired = !samples.base_pairs.empty();
  const bool use_run_medians = samples.base_runs.size() >= least && samples.candidate_runs.size() >= least;
  const std::vector<double>& base = row.paired        ? samples.base_pairs
                                    : use_run_medians ? samples.base_runs
                                                      : samples.base;
  const std::vector<double>& candidate = row.paired        ? samples.candidate_pairs
                                         : use_run_medians ? samples.candidate_runs
                                                           : samples.candidate;
  row.base = median(base);
  row.candidate = median(candidate);
  row.base_samples = base.size();
  row.candidate_samples = candidate.size();
  for (const double value : base) undecided.base.push_back(sign * log_or_zero(value));
  for (const double value : candidate) undecided.candidate.push_back(sign * log_or_zero(value));
  if (row.paired)
    for (size_t i = 0; i < base.size(); ++i)
      undecided.differences.push_back(undecided.candidate[i] - undecided.base[i]);
  else
    used_unpaired_test_ = true;
  if (row.paired && samples.unpaired_runs > 0)
    row.reason = fmt::format("{} without a partner left out", count_of(samples.unpaired_runs, "run"));
  undecided.has_enough_values = std::min(row.base_samples, row.candidate_samples) >= least;
}

void Comparator::estimate(UndecidedRow& undecided) {
  ComparedMetric& row = comparison_.rows[undecided.row_index];
  const std::optional<Shift> shift = row.paired ? one_sample_shift(undecided.differences)
                                                : two_sample_shift(undecided.base, undecided.candidate);
  if (!shift) return;
  const bool higher_is_better = undecided.samples.better == Better::higher;
  const auto change_for = [&](double worse) { return change_of(higher_is_better ? -worse : worse); };
  row.change = change_for(shift->estimate);
  if (!shift->interval) return;
  const auto low = change_for(higher_is_better ? shift->interval->high : shift->interval->low);
  const auto high = change_for(higher_is_better ? shift->interval->low : shift->interval->high);
  if (!low || !high) return;
  row.interval = Interval{*low, *high};
  if (!undecided.has_enough_values) return;
  const double least =
      higher_is_better ? -std::log1p(-settings_.least_effect) : std::log1p(settings_.least_effect);
  const double level = settings_.alpha / double(comparison_.tested_metrics);
  if (const auto found = change_for(detectable_shift(*shift->interval, level, least)))
    row.detectable = std::abs(*found);
}

void Comparator::set_outcome(const UndecidedRow& undecided, double worse, double better) {
  ComparedMetric& row = comparison_.rows[undecided.row_index];
  row.p = worse;
  const bool improves = undecided.samples.better == Better::higher ? !row.change || *row.change > 0
                                                                   : row.change && *row.change < 0;
  const bool is_large = !row.change || std::abs(*row.change) >= settings_.least_effect;
  const bool is_significant = (improves ? better : worse) <= settings_.alpha;
  if (is_significant && is_large) row.outcome = improves ? GateOutcome::better : GateOutcome::regression;
  if (is_significant && !is_large && row.reason.empty())
    row.reason = fmt::format("a change of less than {:.3g}%", 100 * settings_.least_effect);
}

void Comparator::decide() {
  comparison_.tested_metrics = undecided_.size();
  comparison_.least_samples = least_pairs(undecided_.size(), settings_.alpha);
  std::vector<double> worse;
  std::vector<double> better;
  const auto with_opposite_signs = [](std::vector<double> values) {
    for (double& value : values) value = -value;
    return values;
  };
  std::vector<const UndecidedRow*> testable;
  for (UndecidedRow& undecided : undecided_) {
    prepare(undecided);
    estimate(undecided);
    ComparedMetric& row = comparison_.rows[undecided.row_index];
    if (!undecided.has_enough_values) {
      row.outcome = GateOutcome::inconclusive;
      row.reason = fmt::format(
          "{} where {} are needed",
          count_of(std::min(row.base_samples, row.candidate_samples), row.paired ? "pair" : "sample"),
          comparison_.least_samples);
      continue;
    }
    testable.push_back(&undecided);
    worse.push_back(row.paired ? signed_rank_p(undecided.differences)
                               : rank_sum_p(undecided.base, undecided.candidate));
    better.push_back(row.paired ? signed_rank_p(with_opposite_signs(undecided.differences))
                                : rank_sum_p(undecided.candidate, undecided.base));
  }
  worse = holm(worse, undecided_.size());
  better = holm(better, undecided_.size());
  for (size_t i = 0; i < testable.size(); ++i) set_outcome(*testable[i], worse[i], better[i]);
}

Result<void> check(const RecordSet& base, const RecordSet& candidate, const CompareSettings& settings) {
  if (!(settings.alpha > 0 && settings.alpha < 0.5))
    return make_error(Errc::invalid_argument, "--alpha must be a probability between 0 and 0.5");
  if (!(settings.least_effect >= 0 && settings.least_effect < 1))
    return make_error(Errc::invalid_argument,
                      "--least-effect must be a share between 0 and 1, such as 0.05 for 5%");
  for (const auto& [set, name] : {std::pair{&base, "base"}, std::pair{&candidate, "candidate"}})
    if (set->records.empty())
      return make_error(Errc::invalid_argument, "the {} has no record ({})", name,
                        count_of(set->files.size(), "file"));
  return success();
}

std::vector<const Record*> records_of(const RecordSet& set) {
  std::vector<const Record*> records;
  for (const StoredRecord& stored : set.records) records.push_back(&stored.record);
  return records;
}

}  // namespace

bool CompareSettings::selects(const std::string& metric, const Headlines& headlines) const {
  if (metrics.empty()) return headlines.contains(metric);
  return std::any_of(metrics.begin(), metrics.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), metric.c_str(), 0) == 0;
  });
}

size_t Comparison::count(GateOutcome outcome) const {
  return size_t(std::count_if(rows.begin(), rows.end(),
                              [&](const ComparedMetric& row) { return row.outcome == outcome; }));
}

int Comparison::exit_code() const {
  if (count(GateOutcome::incomparable) > 0) return 5;
  if (count(GateOutcome::missing) + count(GateOutcome::failed) > 0) return 4;
  if (count(GateOutcome::regression) > 0) return 1;
  return count(GateOutcome::inconclusive) > 0 ? 3 : 0;
}

Result<Comparison> compare_records(const RecordSet& base, const RecordSet& candidate,
                                   const CompareSettings& settings) {
  PENSTOCK_TRY(check(base, candidate, settings));
  Comparison comparison;
  const std::vector<const Record*> base_records = records_of(base);
  const std::vector<const Record*> candidate_records = records_of(candidate);
  MatchedCells matched = match_cells(base_records, candidate_records);
  const bool share_cells = std::any_of(matched.cells.begin(), matched.cells.end(), [](const Cell& cell) {
    return !cell.base.empty() && !cell.candidate.empty();
  });
  Comparator comparator(settings, comparison);
  for (Cell& cell : matched.cells) comparator.add_cell(std::move(cell));
  comparator.decide();
  if (!settings.metrics.empty() && comparison.rows.empty())
    return make_error(
        Errc::invalid_argument, "nothing to compare by --metric {}{}; the base has {}",
        fmt::join(std::set(settings.metrics.begin(), settings.metrics.end()), ", "),
        comparator.metrics_without_direction().empty() ? "" : " (of which neither more nor less is better)",
        fmt::join(comparator.metric_names(), ", "));
  if (!share_cells) comparison.remarks.emplace_back("base and candidate have no cell in common");
  if (comparator.used_unpaired_test())
    comparison.remarks.emplace_back(
        "unpaired: drift not excluded (`penstock sweep` with two arms runs them in turn)");
  comparison.remarks.insert(comparison.remarks.end(), matched.remarks.begin(), matched.remarks.end());
  for (std::string& remark : environment_remarks(base_records, candidate_records))
    comparison.remarks.push_back(std::move(remark));
  for (const RecordSet* const set : {&base, &candidate})
    comparison.remarks.insert(comparison.remarks.end(), set->problems.begin(), set->problems.end());
  std::stable_sort(comparison.rows.begin(), comparison.rows.end(),
                   [](const ComparedMetric& a, const ComparedMetric& b) { return a.outcome < b.outcome; });
  return comparison;
}

}  // namespace penstock
