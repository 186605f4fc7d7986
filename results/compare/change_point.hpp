// Whether a series of results, one a run and in order of time, changed once, and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace penstock {

struct ChangePoint {
  std::size_t at = 0;  // the first value behind the change
  double p = 1;        // that a series without a change looks like this
  double before = 0;   // medians
  double after = 0;
};

inline constexpr std::size_t kLeastHistory = 30;  // values; of fewer nothing is said
inline constexpr std::size_t kLeastSegment = 3;   // values on either side of a change

// The split that the ranks' cumulative sum puts farthest from 0 (Pettitt, A non-parametric approach to the
// change-point problem, Applied Statistics 28, 1979), at least kLeastSegment from either end. Its p is that
// of this very maximum, among `permutations` orders of the series in which circular blocks of max(5, n / 10)
// neighbours stay together: runs of one week resemble each other without any change (Kirch, Block permutation
// principles for the change analysis of dependent data, J. Statist. Plann. Inference 137, 2007). Drawing
// ends early once 20 orders were as far from 0: 20 / draws is then as good a p, and only what may be a change
// costs all of them (Besag and Clifford, Sequential Monte Carlo p-values, Biometrika 78, 1991). The orders
// are drawn from `seed`, so the same series always gets the same answer. Absent for fewer than kLeastHistory
// values or where one is no finite number.
std::optional<ChangePoint> find_change(std::span<const double> values, std::uint64_t seed = 1,
                                       std::size_t permutations = 9999);

}  // namespace penstock
