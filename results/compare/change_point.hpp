// Finds out whether a series of results, one per run and in order of time, changed once, and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace penstock {

struct ChangePoint {
  size_t index = 0;          // index of the first value after the change
  double p = 1;              // the probability that a series without a change looks like this
  double median_before = 0;  // the medians before and after the change
  double median_after = 0;
};

inline constexpr size_t kLeastHistoryValues = 30;  // values; a shorter series gets no verdict
inline constexpr size_t kLeastSegmentValues = 3;   // values on each side of a change

// The split at which the cumulative sum of the ranks is farthest from 0 (Pettitt, A non-parametric approach
// to the change-point problem, Applied Statistics 28, 1979). It is at least kLeastSegmentValues from either
// end. p is the p-value of this maximum among `permutations` random orders of the series. In each order,
// circular blocks of max(5, n / 10) neighbours stay together, because the runs of one week resemble each
// other without any change (Kirch, Block permutation principles for the change analysis of dependent data, J.
// Statist. Plann. Inference 137, 2007). Drawing stops early when 20 orders were at least as far from 0: 20 /
// draws is then an equally good p. So only a possible change costs all permutations (Besag and Clifford,
// Sequential Monte Carlo p-values, Biometrika 78, 1991). The orders are drawn from `seed`, so the same series
// always gets the same answer. Absent for fewer than kLeastHistoryValues values, or if a value is not finite.
std::optional<ChangePoint> find_change(std::span<const double> values, uint64_t seed = 1,
                                       size_t permutations = 9999);

}  // namespace penstock
