// Estimates how large a shift between two sides is, with a confidence interval, and how small a shift would
// be found. It uses the estimate that belongs to the rank tests (Hodges and Lehmann, Estimates of location
// based on rank tests, Ann. Math. Statist. 34, 1963).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "results/record/statistics.hpp"

namespace penstock {

struct Shift {
  double estimate = 0;
  // Absent if there are too few values: at 95%, fewer than 6 differences, or than 3 and 5 samples.
  std::optional<Interval> interval;
};

// The median of the Walsh averages (x_i + x_j) / 2 with i <= j. The interval is between those order
// statistics of the averages that the signed-rank test gives (Tukey). Absent when empty. Finite numbers only;
// O(n) memory.
std::optional<Shift> one_sample_shift(std::span<const double> differences, double confidence = 0.95);

// The median of all second_j - first_i. The interval is between those order statistics of the differences
// that the rank-sum test gives (Moses). Absent if a side is empty. Finite numbers only; O(m + n) memory.
std::optional<Shift> two_sample_shift(std::span<const double> first, std::span<const double> second,
                                      double confidence = 0.95);

// The smallest shift that a gate with these settings finds with probability `power`. The standard error of
// the estimate is width / (2 z_0.975) of the samples' own interval (Lehmann, Nonparametric confidence
// intervals for a shift parameter, Ann. Math. Statist. 34, 1963). The test must reject at `level` and the
// estimate itself must exceed `least`: max((z_(1 - level) + z_power) error, least + z_power error).
double detectable_shift(const Interval& interval95, double level, double least, double power = 0.9);

}  // namespace penstock
