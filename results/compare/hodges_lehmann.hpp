// Estimates how large the shift between two sides (base and candidate) is, with a confidence interval. Also
// computes the smallest shift that a gate would still find. The estimate is the one that belongs to the rank
// tests in significance.hpp. (Hodges and Lehmann, Estimates of location based on rank tests, Ann. Math.
// Statist. 34, 1963.)
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "results/record/statistics.hpp"

namespace penstock {

struct Shift {
  double estimate = 0;
  // The confidence interval. Absent if there are too few values. At 95%, paired values need at least 6
  // differences. Unpaired values need, for example, 3 on one side and 5 on the other.
  std::optional<Interval> interval;
};

// The shift of paired values, from their differences x. The estimate is the median of the Walsh averages (x_i
// + x_j) / 2 with i <= j. The interval reaches from the k-th smallest to the k-th largest average. k is
// chosen by means of the signed-rank test (Tukey), in walsh_cut(). Absent if there are no differences. All
// numbers must be finite. Needs O(n) memory.
std::optional<Shift> one_sample_shift(std::span<const double> differences, double confidence = 0.95);

// The shift from `first` to `second`, which are not paired. The estimate is the median of all differences
// second_j - first_i. The interval reaches from the k-th smallest to the k-th largest of these differences. k
// is chosen by means of the rank-sum test (Moses), in moses_cut(). Absent if `first` or `second` is empty.
// All numbers must be finite. Needs O(m + n) memory.
std::optional<Shift> two_sample_shift(std::span<const double> first, std::span<const double> second,
                                      double confidence = 0.95);

// The smallest shift that a gate finds with probability `power`. The gate finds a shift if its test rejects
// at `level` and its estimate exceeds `least`. So the smallest shift is max((z_(1 - level) + z_power) error,
// least + z_power error). Here `error` is the standard error of the estimate: width / (2 z_0.975), with the
// width of `interval95`. (Lehmann, Nonparametric confidence intervals for a shift parameter, Ann. Math.
// Statist. 34, 1963.)
double detectable_shift(const Interval& interval95, double level, double least, double power = 0.9);

}  // namespace penstock
