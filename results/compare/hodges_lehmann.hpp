// How large a shift is, by the estimate that belongs to the rank tests (Hodges and Lehmann, Estimates of
// location based on rank tests, Ann. Math. Statist. 34, 1963), with the interval that they give, and how
// small a one would be found.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "results/record/statistics.hpp"

namespace penstock {

struct Shift {
  double estimate = 0;
  std::optional<Interval> interval;  // absent below 6 differences, or 3 and 5 samples, at 95%
};

// The median of the Walsh averages (x_i + x_j) / 2, i <= j, and the order statistics of them that the
// signed-rank test leaves (Tukey). Absent when empty. Finite numbers only; O(n) memory.
std::optional<Shift> one_sample_shift(std::span<const double> differences, double confidence = 0.95);

// The median of all second_j - first_i, and the order statistics of them that the rank-sum test leaves
// (Moses). Absent where a side is empty. Finite numbers only; O(m + n) memory.
std::optional<Shift> two_sample_shift(std::span<const double> first, std::span<const double> second,
                                      double confidence = 0.95);

// The smallest shift that a gate with these settings finds with probability `power`. The estimate's standard
// error is taken from the samples' own interval, width / (2 z_0.975) (Lehmann, Nonparametric confidence
// intervals for a shift parameter, Ann. Math. Statist. 34, 1963); the test must reject at `level` and the
// estimate itself must exceed `least`: max((z_(1 - level) + z_power) error, least + z_power error).
double detectable_shift(const Interval& interval95, double level, double least, double power = 0.9);

}  // namespace penstock
