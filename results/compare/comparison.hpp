// What changed between two sets of records, cell by cell and metric by metric, and whether it may be
// believed.
//
// The rules (the statistics are in significance.hpp):
//  - A cell is what was asked for: command, parameters, tiers by name, corpus, ranks; never where or when it
//  ran.
//    Records of one cell on one side pool their samples in order of time.
//  - Where both sides carry `pair` of one suite, the i-th base is compared with the i-th candidate: d =
//  ln(candidate
//    / base), its sign turned so that positive is worse. Otherwise a rank-sum test stands in, and the
//    comparison says "unpaired: drift not excluded".
//  - A regression is a one-sided exact p, Holm-adjusted over all tested metrics, below `alpha` *and* a
//    Hodges-Lehmann effect of at least `least_effect`. Better is the same with the sign turned.
//  - Fewer than ceil(log2(M / alpha)) samples an arm, of M tested metrics: inconclusive, whatever they say.
//  - Counts (unit "B" or "1", the same in every sample of the base) are compared exactly: another count is a
//  regression
//    where more is worse, else a difference that is named.
//  - A cell that only the base has is missing; one that failed in the candidate is failed; one whose machine,
//  unit or
//    direction differs is incomparable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/base/result.hpp"
#include "results/statistics.hpp"
#include "results/store.hpp"

namespace penstock {

enum class Outcome : std::uint8_t {
  same,  // no difference that counts; `detectable` says how small a one would have been found
  better,
  regression,
  inconclusive,  // too few samples to say anything
  missing,       // the base has it, the candidate lacks it
  failed,        // the candidate has it without a usable number
  incomparable,  // other machine, unit or direction
  added,         // only the candidate has it
};
std::string_view outcome_name(Outcome outcome);

struct CompareSettings {
  double alpha = 0.01;
  double least_effect = 0.05;        // as a fraction: 0.05 is 5%
  std::vector<std::string> metrics;  // glob patterns of metric names; empty: each command's headline metrics
  bool other_machines = false;       // compare although the environments differ
};

struct ComparedMetric {
  std::string cell;    // "read disk, 4 threads, cold": in words, the same on both sides
  std::string metric;  // "samples_per_s"
  std::string unit;
  Outcome outcome = Outcome::same;
  std::string reason;  // why, where the outcome is not plain from the figures
  bool paired = false;
  bool exact = false;  // a count
  std::size_t base_samples = 0;
  std::size_t candidate_samples = 0;  // of pairs: as many
  double base = 0;                    // medians
  double candidate = 0;
  // Hodges-Lehmann, as candidate / base - 1: 0.1 is 10% more, be that better or worse.
  std::optional<double> change;
  std::optional<Interval> interval;  // of change, at 95%
  std::optional<double> p;           // Holm-adjusted, of the worse direction
  std::optional<double> detectable;  // the smallest change that so many samples would find with 90%
};

struct Comparison {
  std::vector<ComparedMetric> rows;  // regressions first, then by cell and metric
  std::vector<std::string> remarks;  // "unpaired: drift not excluded", environment differences in words
  std::size_t tested = 0;            // M
  std::size_t least_samples = 0;     // ceil(log2(M / alpha))
  // 0 none, 1 regression, 3 inconclusive, 4 missing or failed, 5 incomparable; 5 > 4 > 1 > 3.
  int exit_code() const;
};

// An Error only where nothing could be compared at all: no record on one side, or settings that make no
// sense.
Result<Comparison> compare_records(const RecordSet& base, const RecordSet& candidate,
                                   const CompareSettings& settings);

}  // namespace penstock
