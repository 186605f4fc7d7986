// Rank tests: the probability that chance alone makes one side look that much worse. They assume no
// distribution, only that without a change the two sides could be swapped.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace penstock {

// Twice the rank of each value, with 1 as the lowest rank. Doubling gives whole numbers: equal values share
// the mean of their ranks.
std::vector<size_t> doubled_ranks(std::span<const double> values);

// One-sided p of Wilcoxon's signed-rank test: the probability that differences are this far above 0 by
// chance, if each could equally have the other sign.
// Zeros are ranked but count on neither side (Pratt, Remarks on zeros and ties in the Wilcoxon signed rank
// procedures, JASA 54, 1959). Equal values share the mean of their ranks. Exact up to kMostExactPairs, by the
// permutation distribution of these ranks; for more, the normal approximation with a continuity correction. 1
// if all differences are zero. NaN is not allowed.
double signed_rank_p(std::span<const double> differences);
inline constexpr size_t kMostExactPairs = 200;

// One-sided p of Wilcoxon's rank-sum test (Mann-Whitney): the probability that `second` is this far above
// `first` by chance, if every sample could have been on either side.
// Equal values share the mean of their ranks. Exact up to kMostExactSamples of both sides together, by the
// permutation distribution of these ranks; for more, the normal approximation with the variance of the tied
// ranks and a continuity correction. 1 if a side is empty.
double rank_sum_p(std::span<const double> first, std::span<const double> second);
inline constexpr size_t kMostExactSamples = 80;

// Holm's step-down adjustment (A simple sequentially rejective multiple test procedure, Scandinavian Journal
// of Statistics 6, 1979). Returns the adjusted p in the order given. If each is compared with alpha, the
// probability of any false alarm is at most alpha. `tests` is the number of all tests; those without a p of
// their own count as 1.
std::vector<double> holm(std::span<const double> p, size_t tests);

// The smallest number of pairs with which the most extreme result of one of `tests` tests is significant:
// ceil(log2(tests / alpha)). 0 without tests.
size_t least_pairs(size_t tests, double alpha);

// How many of the smallest and of the largest order statistics an interval may leave out and still cover with
// `confidence`. walsh_cut() is for the Walsh averages of n samples, moses_cut() for the differences of two
// sides. By the exact null distribution of the matching test; for large n by its normal approximation. Absent
// if even the whole range does not cover.
std::optional<size_t> walsh_cut(size_t n, double confidence);
std::optional<size_t> moses_cut(size_t first, size_t second, double confidence);

}  // namespace penstock
