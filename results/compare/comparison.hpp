// Compares two sets of records, cell by cell and metric by metric, and decides which changes are significant.
//
// The rules (the statistics are in significance.hpp and hodges_lehmann.hpp, the cells in matched_cells.hpp):
//  - If both sides have a `pair` of the same suite with different arms, run i of the base is compared with
//    run i of the candidate, each by its median: d = ln(candidate / base), with the sign turned so that
//    positive is worse.
//  - Otherwise a rank-sum test is used, and the comparison remarks "unpaired: drift not excluded". If both
//    sides have enough runs, it takes one median per run, since the repeats of one run resemble each other.
//    Else it takes every sample.
//  - A regression needs both: a one-sided exact p of at most `alpha`, Holm-adjusted over all M tested
//    metrics, and a Hodges-Lehmann effect of at least `least_effect`. "Better" is the same with the sign
//    turned.
//  - Fewer than ceil(log2(M / alpha)) values on a side are inconclusive, whatever the values are.
//  - A zero is smaller than any other number and equal to another zero: a change from or to it is beyond
//    measure.
//  - Counts (unit "B" or "1", whole numbers, the same in every sample of the base) are compared exactly.
//    Another count is a regression if it is worse, better if it is better, and else "differs".
//  - A cell that only the base has is missing. A cell is failed if a run of the candidate has no usable
//    numbers. It is incomparable if the machine, data, unit or direction differs.
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
  same,     // no significant change; `detectable` is the smallest change that would have been found
  added,    // only the candidate has this cell or metric
};

// The names of an outcome in each output format, in the order of GateOutcome.
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
  double least_effect = 0.05;  // as a fraction: 0.05 is 5%
  std::vector<std::string> metrics =
      {};                             // glob patterns of metric names; empty: the headlines of the records
  bool allow_other_machines = false;  // compare although the machines differ
  // The tables of these commands define the headlines of records without marks (results/cells/headlines.hpp).
  Commands commands = {};

  // Whether the settings select this metric. `headlines` are the headlines of the records that have the
  // metric.
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
  double base = 0;               // median; `candidate` as well
  double candidate = 0;
  // Hodges-Lehmann estimate of candidate / base - 1: 0.1 is 10% more, whether that is better or worse. Absent
  // if one side is zero.
  std::optional<double> change;
  std::optional<Interval> interval;  // the 95% confidence interval of `change`
  std::optional<double> p;           // Holm-adjusted p of a change for the worse
  std::optional<double> detectable;  // the smallest change for the worse that is found with 90% probability
};

struct Comparison {
  std::vector<ComparedMetric> rows;  // by outcome, regressions first; then in the order of the base's records
  std::vector<std::string> remarks;  // "unpaired: drift not excluded"; differences other than figures
  size_t tested_metrics = 0;         // the number M of tested metrics
  size_t least_samples = 0;          // values that each side needs: ceil(log2(M / alpha))
  // 0 no regression, 1 regression, 3 inconclusive, 4 missing or failed, 5 incomparable. If several apply, the
  // first of 5, 4, 1, 3 wins.
  int exit_code() const;
  size_t count(GateOutcome outcome) const;
};

// An error only if nothing could be compared at all: a side has no record, no metric matches, or the settings
// are invalid.
Result<Comparison> compare_records(const RecordSet& base, const RecordSet& candidate,
                                   const CompareSettings& settings);

}  // namespace penstock
