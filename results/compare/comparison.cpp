#include "results/compare/comparison.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "results/cells/cells.hpp"
#include "results/compare/comparable.hpp"
#include "results/compare/compared_samples.hpp"
#include "results/compare/hodges_lehmann.hpp"
#include "results/compare/matched_cells.hpp"
#include "results/compare/significance.hpp"

namespace penstock {
namespace {

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// A row that can be decided only when the number of all tests is known, since p is adjusted by that number.
struct Waiting {
  std::size_t row = 0;
  ComparedSamples samples;
  std::vector<double> differences;  // of pairs; positive is worse
  std::vector<double> base;         // logarithms, with the sign turned so that more is worse
  std::vector<double> candidate;
  bool enough = false;
};

// Removes the records without usable numbers. Returns how many they are and the first one's verdict and
// reason, or "" if none was removed.
std::string remove_unusable(std::vector<const Record*>& records) {
  const std::size_t all = records.size();
  std::string first;
  for (const Record* const record : records)
    if (!is_usable(*record) && first.empty())
      first = fmt::format("{}{}{}", verdict_name(record->verdict), record->reason.empty() ? "" : ": ",
                          record->reason);
  std::erase_if(records, [](const Record* record) { return !is_usable(*record); });
  if (records.size() == all) return "";
  return all == 1 ? first : fmt::format("{} of {}: {}", all - records.size(), counted(all, "run"), first);
}

class Comparing {
 public:
  Comparing(const CompareSettings& settings, Comparison& comparison)
      : settings_(settings), comparison_(comparison) {}

  void cell(Cell cell);
  void decide();
  bool unpaired() const { return unpaired_; }
  const std::set<std::string>& known_metrics() const { return known_; }
  const std::set<std::string>& undirected() const { return undirected_; }

 private:
  ComparedMetric& row(const Cell& cell, const std::string& metric, GateOutcome outcome, std::string reason);
  void metric(const Cell& cell, const std::string& name);
  void count(ComparedMetric& row, const ComparedSamples& samples);
  void prepare(Waiting& waiting);
  void measure(Waiting& waiting);
  void judge(const Waiting& waiting, double worse, double better);

  const CompareSettings& settings_;
  Comparison& comparison_;
  std::vector<Waiting> waiting_;
  std::set<std::string> known_;
  std::set<std::string> undirected_;  // requested metrics without a better direction
  bool unpaired_ = false;
};

ComparedMetric& Comparing::row(const Cell& cell, const std::string& metric, GateOutcome outcome,
                               std::string reason) {
  ComparedMetric& row = comparison_.rows.emplace_back();
  row.cell = cell.words;
  row.metric = metric;
  row.outcome = outcome;
  row.reason = std::move(reason);
  return row;
}

void Comparing::cell(Cell cell) {
  const std::string base_lacks = remove_unusable(cell.base);
  const bool had_base = !cell.base.empty() || !base_lacks.empty();
  const bool had_candidate = !cell.candidate.empty();
  const std::string candidate_lacks = remove_unusable(cell.candidate);
  if (!had_candidate) {
    row(cell, "", GateOutcome::missing, "the candidate has no such cell");
    return;
  }
  if (!candidate_lacks.empty()) row(cell, "", GateOutcome::failed, candidate_lacks);
  if (cell.candidate.empty()) return;
  if (!had_base) {
    row(cell, "", GateOutcome::added, "the base has no such cell");
    return;
  }
  if (cell.base.empty()) {
    row(cell, "", GateOutcome::inconclusive, "the base has no usable number: " + base_lacks);
    return;
  }
  std::string other = work_difference(cell);
  if (other.empty() && !settings_.other_machines) other = machine_difference(cell);
  if (!other.empty()) {
    row(cell, "", GateOutcome::incomparable, other);
    return;
  }
  std::set<std::string> names;
  for (const Record* const record : cell.base)
    for (const auto& [name, metric] : record->metrics) names.insert(name);
  known_.insert(names.begin(), names.end());
  const std::size_t rows = comparison_.rows.size();
  Headlines headlines(metrics_of(cell.base.front()->command, settings_.commands));
  for (const Record* const record : cell.base) headlines.add(*record);
  for (const Record* const record : cell.candidate) headlines.add(*record);
  for (const std::string& name : names)
    if (settings_.want(name, headlines)) metric(cell, name);
  if (comparison_.rows.size() == rows && settings_.metrics.empty())
    row(cell, "", GateOutcome::inconclusive,
        "the base has no metric by which this command is compared (--metric names others)");
}

void Comparing::metric(const Cell& cell, const std::string& name) {
  const auto has = [&](const Record* record) { return record->metrics.contains(name); };
  if (std::none_of(cell.candidate.begin(), cell.candidate.end(), has)) {
    row(cell, name, GateOutcome::missing, "the candidate has no such metric");
    return;
  }
  std::string why;
  std::optional<ComparedSamples> samples = gather_samples(cell, name, why);
  if (!samples) {
    row(cell, name, GateOutcome::incomparable, why);
    return;
  }
  const auto negative = [](double value) { return value < 0; };
  const bool counts = is_count(*samples);
  if (!counts && samples->better == Better::neither) {
    if (!settings_.metrics.empty()) undirected_.insert(name);
    return;
  }
  ComparedMetric& fresh = row(cell, name, GateOutcome::same, "");
  fresh.unit = samples->unit;
  fresh.base_samples = samples->base.size();
  fresh.candidate_samples = samples->candidate.size();
  fresh.base = median(samples->base);
  fresh.candidate = median(samples->candidate);
  if (samples->base.empty()) {
    fresh.outcome = GateOutcome::inconclusive;
    fresh.reason = "the base has no finite number";
  } else if (samples->candidate.empty()) {
    fresh.outcome = GateOutcome::failed;
    fresh.reason = "the candidate has no finite number";
  } else if (counts) {
    count(fresh, *samples);
  } else if (std::any_of(samples->base.begin(), samples->base.end(), negative) ||
             std::any_of(samples->candidate.begin(), samples->candidate.end(), negative)) {
    fresh.outcome = GateOutcome::incomparable;
    fresh.reason = "a number below zero has no ratio to another";
  } else {
    waiting_.push_back({comparison_.rows.size() - 1, *std::move(samples), {}, {}, {}, false});
  }
}

void Comparing::count(ComparedMetric& row, const ComparedSamples& samples) {
  row.exact = true;
  const double expected = samples.base.front();
  if (expected != 0) row.change = row.candidate / expected - 1;
  std::size_t more = 0;
  std::size_t less = 0;
  double farthest = expected;
  for (const double value : samples.candidate) {
    if (value > expected) ++more;
    if (value < expected) ++less;
    if (std::abs(value - expected) > std::abs(farthest - expected)) farthest = value;
  }
  if (more + less == 0) return;
  row.reason = fmt::format("{} of {} differ: {:.0f} instead of {:.0f}", more + less,
                           counted(samples.candidate.size(), "sample"), farthest, expected);
  const std::size_t worse = samples.better == Better::higher ? less : more;
  row.outcome = samples.better == Better::neither ? GateOutcome::differs
                : worse > 0                       ? GateOutcome::regression
                                                  : GateOutcome::better;
}

void Comparing::prepare(Waiting& waiting) {
  ComparedMetric& row = comparison_.rows[waiting.row];
  const ComparedSamples& samples = waiting.samples;
  const double turn = samples.better == Better::higher ? -1 : 1;
  const std::size_t least = comparison_.least_samples;
  row.paired = !samples.base_pairs.empty();
  const bool by_run = samples.base_runs.size() >= least && samples.candidate_runs.size() >= least;
  const std::vector<double>& base = row.paired ? samples.base_pairs
                                    : by_run   ? samples.base_runs
                                               : samples.base;
  const std::vector<double>& candidate = row.paired ? samples.candidate_pairs
                                         : by_run   ? samples.candidate_runs
                                                    : samples.candidate;
  row.base = median(base);
  row.candidate = median(candidate);
  row.base_samples = base.size();
  row.candidate_samples = candidate.size();
  for (const double value : base) waiting.base.push_back(turn * log_or_zero(value));
  for (const double value : candidate) waiting.candidate.push_back(turn * log_or_zero(value));
  if (row.paired)
    for (std::size_t i = 0; i < base.size(); ++i)
      waiting.differences.push_back(waiting.candidate[i] - waiting.base[i]);
  else
    unpaired_ = true;
  if (row.paired && samples.alone > 0)
    row.reason = fmt::format("{} without a partner left out", counted(samples.alone, "run"));
  waiting.enough = std::min(row.base_samples, row.candidate_samples) >= least;
}

void Comparing::measure(Waiting& waiting) {
  ComparedMetric& row = comparison_.rows[waiting.row];
  const std::optional<Shift> shift =
      row.paired ? one_sample_shift(waiting.differences) : two_sample_shift(waiting.base, waiting.candidate);
  if (!shift) return;
  const bool higher = waiting.samples.better == Better::higher;
  const auto as_change = [&](double worse) { return change_of(higher ? -worse : worse); };
  row.change = as_change(shift->estimate);
  if (!shift->interval) return;
  const auto low = as_change(higher ? shift->interval->high : shift->interval->low);
  const auto high = as_change(higher ? shift->interval->low : shift->interval->high);
  if (!low || !high) return;
  row.interval = Interval{*low, *high};
  if (!waiting.enough) return;
  const double least = higher ? -std::log1p(-settings_.least_effect) : std::log1p(settings_.least_effect);
  const double level = settings_.alpha / static_cast<double>(comparison_.tested);
  if (const auto found = as_change(detectable_shift(*shift->interval, level, least)))
    row.detectable = std::abs(*found);
}

void Comparing::judge(const Waiting& waiting, double worse, double better) {
  ComparedMetric& row = comparison_.rows[waiting.row];
  row.p = worse;
  const bool gains = waiting.samples.better == Better::higher ? !row.change || *row.change > 0
                                                              : row.change && *row.change < 0;
  const bool large = !row.change || std::abs(*row.change) >= settings_.least_effect;
  const bool believed = (gains ? better : worse) <= settings_.alpha;
  if (believed && large) row.outcome = gains ? GateOutcome::better : GateOutcome::regression;
  if (believed && !large && row.reason.empty())
    row.reason = fmt::format("a change of less than {:.3g}%", 100 * settings_.least_effect);
}

void Comparing::decide() {
  comparison_.tested = waiting_.size();
  comparison_.least_samples = least_pairs(waiting_.size(), settings_.alpha);
  std::vector<double> worse;
  std::vector<double> better;
  const auto opposite = [](std::vector<double> values) {
    for (double& value : values) value = -value;
    return values;
  };
  std::vector<const Waiting*> judged;
  for (Waiting& waiting : waiting_) {
    prepare(waiting);
    measure(waiting);
    ComparedMetric& row = comparison_.rows[waiting.row];
    if (!waiting.enough) {
      row.outcome = GateOutcome::inconclusive;
      row.reason = fmt::format(
          "{} where {} are needed",
          counted(std::min(row.base_samples, row.candidate_samples), row.paired ? "pair" : "sample"),
          comparison_.least_samples);
      continue;
    }
    judged.push_back(&waiting);
    worse.push_back(row.paired ? signed_rank_p(waiting.differences)
                               : rank_sum_p(waiting.base, waiting.candidate));
    better.push_back(row.paired ? signed_rank_p(opposite(waiting.differences))
                                : rank_sum_p(waiting.candidate, waiting.base));
  }
  worse = holm(worse, waiting_.size());
  better = holm(better, waiting_.size());
  for (std::size_t i = 0; i < judged.size(); ++i) judge(*judged[i], worse[i], better[i]);
}

Result<void> check(const RecordSet& base, const RecordSet& candidate, const CompareSettings& settings) {
  if (!(settings.alpha > 0 && settings.alpha < 0.5))
    return make_error(Errc::invalid_argument, "alpha is a probability between 0 and 0.5");
  if (!(settings.least_effect >= 0 && settings.least_effect < 1))
    return make_error(Errc::invalid_argument, "the least effect is a share between 0 and 1");
  for (const auto& [set, name] : {std::pair{&base, "base"}, std::pair{&candidate, "candidate"}})
    if (set->records.empty())
      return make_error(Errc::invalid_argument,
                        fmt::format("the {} has no record ({})", name, counted(set->files.size(), "file")));
  return success();
}

std::vector<const Record*> records_of(const RecordSet& set) {
  std::vector<const Record*> records;
  for (const StoredRecord& stored : set.records) records.push_back(&stored.record);
  return records;
}

}  // namespace

bool CompareSettings::want(const std::string& metric, const Headlines& headlines) const {
  if (metrics.empty()) return headlines.contains(metric);
  return std::any_of(metrics.begin(), metrics.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), metric.c_str(), 0) == 0;
  });
}

std::size_t Comparison::count(GateOutcome outcome) const {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [&](const ComparedMetric& row) { return row.outcome == outcome; }));
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
  const std::vector<const Record*> before = records_of(base);
  const std::vector<const Record*> now = records_of(candidate);
  MatchedCells matched = match_cells(before, now);
  const bool overlap = std::any_of(matched.cells.begin(), matched.cells.end(), [](const Cell& cell) {
    return !cell.base.empty() && !cell.candidate.empty();
  });
  Comparing comparing(settings, comparison);
  for (Cell& cell : matched.cells) comparing.cell(std::move(cell));
  comparing.decide();
  if (!settings.metrics.empty() && comparison.rows.empty())
    return make_error(
        Errc::invalid_argument,
        fmt::format("nothing to compare by --metric {}{}; the base has {}",
                    fmt::join(std::set(settings.metrics.begin(), settings.metrics.end()), ", "),
                    comparing.undirected().empty() ? "" : " (neither more nor less of it is better)",
                    fmt::join(comparing.known_metrics(), ", ")));
  if (!overlap) comparison.remarks.emplace_back("base and candidate have no cell in common");
  if (comparing.unpaired())
    comparison.remarks.emplace_back(
        "unpaired: drift not excluded (`penstock sweep` with two arms runs them in turn)");
  comparison.remarks.insert(comparison.remarks.end(), matched.remarks.begin(), matched.remarks.end());
  for (std::string& remark : environment_remarks(before, now))
    comparison.remarks.push_back(std::move(remark));
  for (const RecordSet* const set : {&base, &candidate})
    comparison.remarks.insert(comparison.remarks.end(), set->problems.begin(), set->problems.end());
  std::stable_sort(comparison.rows.begin(), comparison.rows.end(),
                   [](const ComparedMetric& a, const ComparedMetric& b) { return a.outcome < b.outcome; });
  return comparison;
}

}  // namespace penstock
