// Rank tests: how often chance alone would make one side look that much worse. They assume no distribution,
// only that under no change the sides could be swapped.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace penstock {

// Twice the rank of each value, from 2 on: whole numbers, since ties share the mean of their ranks.
std::vector<std::size_t> doubled_ranks(std::span<const double> values);

// One-sided p of Wilcoxon's signed-rank test: that differences this far above 0 come by chance, where each
// was as likely to have the other sign. Zeros are ranked and then count on neither side (Pratt, Remarks on
// zeros and ties in the Wilcoxon signed rank procedures, JASA 54, 1959); ties share the mean of their ranks.
// Exact up to kExactPairs, by the permutation distribution of these very ranks; beyond that the normal
// approximation with a correction for continuity. 1 without a difference that is no zero. NaN is not allowed.
double signed_rank_p(std::span<const double> differences);
inline constexpr std::size_t kExactPairs = 200;

// One-sided p of Wilcoxon's rank-sum test (Mann-Whitney): that `second` lies this far above `first` by
// chance, where any of all the samples could have been on either side. Ties share the mean of their ranks.
// Exact up to kExactSamples of both together, by the permutation distribution of these very ranks; beyond
// that the normal approximation with the variance that ties leave and a correction for continuity. 1 where a
// side is empty.
double rank_sum_p(std::span<const double> first, std::span<const double> second);
inline constexpr std::size_t kExactSamples = 80;

// Holm's step-down adjustment (A simple sequentially rejective multiple test procedure, Scandinavian Journal
// of Statistics 6, 1979), in the order given: compared with alpha, all of them together err with at most that
// probability. `tests`: of how many, where some had no p of their own and count as 1.
std::vector<double> holm(std::span<const double> p, std::size_t tests);

// Pairs below which not even the most extreme outcome of one of `tests` tests could be told from chance:
// ceil(log2(tests / alpha)). 0 without tests.
std::size_t least_pairs(std::size_t tests, double alpha);

// How many of the smallest order statistics may be left out on either side of a 95% (by default) interval
// from `count` Walsh averages of n samples, or differences of two sides, so that it still covers: by the
// exact null distribution of the test it belongs to, for large n by its normal approximation. Absent where
// even none may.
std::optional<std::size_t> walsh_cut(std::size_t n, double confidence);
std::optional<std::size_t> moses_cut(std::size_t first, std::size_t second, double confidence);

}  // namespace penstock
