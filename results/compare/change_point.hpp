// Finds out whether a series of results changed once, and where. The series has one result per run, in order
// of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace penstock {

struct ChangePoint {
  size_t index = 0;  // index of the first value after the change
  // The probability that chance alone makes a series without a change look like this.
  double p = 1;
  double median_before = 0;  // the medians of the values before and after the change
  double median_after = 0;
};

inline constexpr size_t kLeastHistoryValues = 30;  // A series with fewer values gets no verdict.
// A change has at least this many values before it and after it.
inline constexpr size_t kLeastSegmentValues = 3;

// Finds the most likely change: the split at which the sum of the ranks before it, each minus the mean rank,
// is farthest from 0. (Pettitt, A non-parametric approach to the change-point problem, Applied Statistics 28,
// 1979.) The split is at least kLeastSegmentValues from either end. Absent for fewer than kLeastHistoryValues
// values, or if a value is not finite.
//
// The p-value: the values are put into many random orders, and p is the fraction of the orders whose sum is
// at least as far from 0. In each order, blocks of max(5, n / 10) neighbours stay together, because the runs
// of one week resemble each other without any change. (Kirch, Block permutation principles for the change
// analysis of dependent data, J. Statist. Plann. Inference 137, 2007.)
//
// The number of orders: at most `permutations` are drawn. Drawing stops early when the sums of 20 orders were
// at least as far from 0; then p is 20 / (number of drawn orders), which is as reliable. So only a series
// that may have a change needs all permutations. (Besag and Clifford, Sequential Monte Carlo p-values,
// Biometrika 78, 1991.) The orders are drawn from `seed`, so the same series always gets the same answer.
std::optional<ChangePoint> find_change(std::span<const double> values, uint64_t seed = 1,
                                       size_t permutations = 9999);

}  // namespace penstock
