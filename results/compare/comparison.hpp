// What changed between two sets of records, cell by cell and metric by metric, and whether it may be
// believed.
//
// The rules (the statistics are in significance.hpp and hodges_lehmann.hpp, the cells in
// matched_cells.hpp):
//  - Where both sides carry `pair` of one suite with different arms, the i-th base is compared with the
//    i-th candidate, each by the median of its run: d = ln(candidate / base), its sign turned so that
//    positive is worse. Otherwise a rank-sum test is used, and the comparison says "unpaired: drift
//    not excluded". It takes one median per run where both sides have enough runs, since the repeats of
//    one run resemble each other, and else every sample.
//  - A regression is a one-sided exact p, Holm-adjusted over all M tested metrics, of at most `alpha`
//    *and* a Hodges-Lehmann effect of at least `least_effect`. Better is the same with the sign turned.
//  - Fewer than ceil(log2(M / alpha)) values an arm: inconclusive, whatever they say.
//  - A zero is less than any number and equal to another zero: against it every change is beyond
//    measure.
//  - Counts (unit "B" or "1", whole numbers, the same in every sample of the base) are compared
//    exactly: another count is a regression where it is worse, better where it is better, and else
//    differs.
//  - A cell that only the base has is missing; one whose candidate has a run without usable numbers is
//    failed; one whose machine, data, unit or direction differs is incomparable.
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

enum class GateOutcome : std::uint8_t {
  regression,
  missing,       // the base has it, the candidate lacks it
  failed,        // the candidate has it without a usable number
  incomparable,  // other machine, data, unit or direction
  inconclusive,  // too few samples to say anything
  better,
  differs,  // another count, of which neither more nor less is better
  same,     // no difference that counts; `detectable` says how small a one would have been found
  added,    // only the candidate has it
};

// How an outcome is called, in the order of GateOutcome.
struct OutcomeNames {
  std::string_view name;     // in JSON and CSV
  std::string_view text;     // in the table of `compare`
  std::string_view on_page;  // in the report
  std::string_view junit;    // the element of JUnit's XML; "" for none
  std::string_view weight;   // "good", "caution" or "failure": how the report marks it
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
  return kOutcomes[static_cast<std::size_t>(outcome)];
}

struct CompareSettings {
  double alpha = 0.01;
  double least_effect = 0.05;  // as a fraction: 0.05 is 5%
  std::vector<std::string> metrics =
      {};                       // glob patterns of metric names; empty: the headlines of the records
  bool other_machines = false;  // compare although the machines differ
  Commands commands = {};  // say what the headlines are of records that do not (results/cells/headlines.hpp)

  // Whether a metric is to be compared; `headlines` of its records.
  bool want(const std::string& metric, const Headlines& headlines) const;
};

struct ComparedMetric {
  std::string cell;    // "read imagenet, disk, threads 4, cache cold": the same on both sides
  std::string metric;  // "samples_per_s"; "" where the outcome is of the whole cell
  std::string unit;
  GateOutcome outcome = GateOutcome::same;
  std::string reason;  // why, where the outcome is not plain from the figures
  bool paired = false;
  bool exact = false;  // a count
  std::size_t base_samples = 0;
  std::size_t candidate_samples = 0;  // of pairs: as many
  double base = 0;                    // medians
  double candidate = 0;
  // Hodges-Lehmann, as candidate / base - 1: 0.1 is 10% more, be that better or worse. Absent from or beyond
  // a zero.
  std::optional<double> change;
  std::optional<Interval> interval;  // of change, at 95%
  std::optional<double> p;           // Holm-adjusted, of the worse direction
  std::optional<double> detectable;  // the smallest change for the worse that would be found with 90%
};

struct Comparison {
  std::vector<ComparedMetric> rows;  // by outcome, the gravest first; then as the base's records come
  std::vector<std::string> remarks;  // "unpaired: drift not excluded", what differs besides the figures
  std::size_t tested = 0;            // M
  std::size_t least_samples = 0;     // ceil(log2(M / alpha))
  // 0 none, 1 regression, 3 inconclusive, 4 missing or failed, 5 incomparable; 5 > 4 > 1 > 3.
  int exit_code() const;
  std::size_t count(GateOutcome outcome) const;
};

// An Error only where nothing could be compared at all: no record on one side, no metric that matches, or
// settings that make no sense.
Result<Comparison> compare_records(const RecordSet& base, const RecordSet& candidate,
                                   const CompareSettings& settings);

}  // namespace penstock
