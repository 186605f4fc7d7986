// Compares two sets of records, cell by cell and metric by metric, and decides which changes are significant.
//
// The rules (the statistics are in significance.hpp and hodges_lehmann.hpp, the cells in matched_cells.hpp):
// - Paired test, if both sides are arms of one suite. Records of interleaved runs have a field `pair`. It
//   says which sweep made the record (the suite), which arm it measured, and the number of the run. Run i of
//   the base is compared with run i of the candidate, each by its median. The difference is d = ln(candidate
//   / base), with its sign chosen so that a positive d is worse.
// - Otherwise a rank-sum test is used, and the comparison remarks "unpaired: drift not excluded". If both
//   sides have enough runs, the test takes one median per run, since the repeats of one run resemble each
//   other. Else it takes every sample.
// - A regression needs two things: a one-sided exact p of at most `alpha`, Holm-adjusted over all M tested
//   metrics, and a Hodges-Lehmann effect of at least `least_effect`. "Better" has the same two conditions for
//   the opposite sign.
// - With fewer than ceil(log2(M / alpha)) values on a side, the outcome is inconclusive, whatever the values
//   are.
// - A zero is smaller than any other number and equal to another zero. The size of a change from or to zero
//   is not given.
// - Counts (unit "B" or "1", whole numbers, the same in every sample of the base) are compared exactly. If
//   the count changed, the outcome is a regression if it got worse, better if it got better, and "differs" if
//   neither direction is better.
// - A cell that only the base has is missing. A cell is failed if a run of the candidate has no usable
//   numbers. A cell is incomparable if the machine, data, unit or direction differs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "results/cells/headlines.hpp"
#include "results/record/statistics.hpp"
#include "results/record/store.hpp"

namespace penstock {

enum class GateOutcome : uint8_t {
  regression,
  missing,       // only the base has this cell or metric
  failed,        // the candidate has no usable number
  incomparable,  // other machine, data, unit or direction
  inconclusive,  // too few samples to say anything
  better,
  differs,  // the count changed, but neither direction is better
  // No significant change; ComparedMetric::detectable is the smallest change that would have been found.
  same,
  added,  // only the candidate has this cell or metric
};

// The names of one outcome in each output format. kOutcomes has them in the order of GateOutcome.
struct OutcomeNames {
  std::string_view name;         // its name in JSON and CSV
  std::string_view text;         // its text in the table of `compare`
  std::string_view report_text;  // its text in the report
  std::string_view junit;        // the element of JUnit's XML; "" for none
  std::string_view severity;     // "good", "caution" or "failure": how the report marks it
};
inline constexpr std::array<OutcomeNames, 9> kOutcomes{{
    {"regression", "REGRESSION", "worse", "failure", "failure"},
    {"missing", "MISSING", "missing", "error", "failure"},
    {"failed", "FAILED", "failed", "error", "failure"},
    {"incomparable", "INCOMPARABLE", "incomparable", "error", "caution"},
    {"inconclusive", "inconclusive", "too few samples", "skipped", "caution"},
    {"better", "better", "better", "", "good"},
    {"differs", "differs", "differs", "", "caution"},
    {"same", "no change", "no difference", "", "good"},
    {"added", "added", "new", "", "caution"},
}};
constexpr const OutcomeNames& names_of(GateOutcome outcome) {
  return kOutcomes[size_t(outcome)];
}

struct CompareSettings {
  double alpha = 0.01;
  double least_effect = 0.05;  // the least change that counts, as a fraction: 0.05 is 5%
  // Glob patterns of the metrics to compare. Empty: the headlines, which are the main metrics that each
  // record marks (headlines.hpp).
  std::vector<std::string> metrics = {};
  bool allow_other_machines = false;  // whether to compare although the machines differ
  // Tables of all commands. They name the headlines of records that do not mark their own headlines
  // (results/cells/headlines.hpp).
  Commands commands = {};

  // Whether `metric` is to be compared. `headlines` are the headlines of the records that have this metric.
  bool selects(const std::string& metric, const Headlines& headlines) const;
};

struct ComparedMetric {
  std::string cell;    // "read imagenet, disk, threads 4, cache cold": of both sides
  std::string metric;  // "samples_per_s"; "" if the outcome is of the whole cell
  std::string unit;
  GateOutcome outcome = GateOutcome::same;
  std::string reason;  // "" if the figures explain the outcome
  bool paired = false;
  bool is_exact_count = false;
  size_t base_samples = 0;
  size_t candidate_samples = 0;  // if paired, as many as base_samples
  double base = 0;               // median of the base; `candidate` is that of the candidate
  double candidate = 0;
  // Hodges-Lehmann estimate of candidate / base - 1: 0.1 is 10% more, whether that is better or worse. Absent
  // if base or candidate is zero.
  std::optional<double> change;
  std::optional<Interval> interval;  // the 95% confidence interval of `change`
  // How likely chance alone makes the candidate look that much worse: a p-value, Holm-adjusted for the number
  // of tests.
  std::optional<double> p;
  std::optional<double> detectable;  // the smallest change for the worse that is found with 90% probability
};

struct Comparison {
  // Sorted by outcome, regressions first; within an outcome in the order of the base's records.
  std::vector<ComparedMetric> rows;
  std::vector<std::string> remarks;  // "unpaired: drift not excluded"; differences other than figures
  size_t tested_metrics = 0;         // the number M of tested metrics in the rules above
  size_t least_samples = 0;          // how many values base and candidate each need: ceil(log2(M / alpha))
  // The exit code: 0 no regression, 1 regression, 3 inconclusive, 4 missing or failed, 5 incomparable. If
  // several apply, the first of 5, 4, 1, 3 that applies wins.
  int exit_code() const;
  size_t count(GateOutcome outcome) const;
};

// Compares all metrics that the settings select. Fails only if nothing could be compared: base or candidate
// has no record, no metric matches, or the settings are invalid.
Result<Comparison> compare_records(const RecordSet& base, const RecordSet& candidate,
                                   const CompareSettings& settings);

}  // namespace penstock
