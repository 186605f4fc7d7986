// Rank tests. A test returns the probability that chance alone makes one of two sides (base and candidate)
// look worse by at least the measured amount. The tests need no assumption about the distribution. They only
// assume that without a change any sample could as well have come from the other side.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace penstock {

// Twice the rank of each value; the lowest rank is 1. Equal values share the mean of their ranks, which may
// be a multiple of 1/2; twice that mean is a whole number.
std::vector<size_t> doubled_ranks(std::span<const double> values);

// One-sided p of Wilcoxon's signed-rank test: the probability that the differences are this far above 0 by
// chance, if each could as well have the other sign. 1 if all differences are zero. NaN is not allowed.
// Zeros get ranks, but count neither as positive nor as negative. (Pratt, Remarks on zeros and ties in the
// Wilcoxon signed rank procedures, JASA 54, 1959.) Equal values share the mean of their ranks.
// Up to kMostExactPairs differences, p is exact: it is computed from the permutation distribution of these
// ranks. For more differences it is the normal approximation with a continuity correction.
double signed_rank_p(std::span<const double> differences);
inline constexpr size_t kMostExactPairs = 200;

// One-sided p of Wilcoxon's rank-sum test (Mann-Whitney): the probability that `second` is this far above
// `first` by chance. Chance means that every sample could as well have been in the other of the two lists. 1
// if `first` or `second` is empty. Equal values share the mean of their ranks.
// If `first` and `second` together have at most kMostExactSamples samples, p is exact: it is computed from
// the permutation distribution of these ranks. For more samples it is the normal approximation with the
// variance of the tied ranks and a continuity correction.
double rank_sum_p(std::span<const double> first, std::span<const double> second);
inline constexpr size_t kMostExactSamples = 80;

// Holm's step-down adjustment of p for several tests. If each adjusted p is compared with alpha, the
// probability of any false alarm is at most alpha. Returns the adjusted p in the order of `p`. `tests` is the
// number of all tests; those that `p` does not have count as if their p were 1. (A simple sequentially
// rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979.)
std::vector<double> holm(std::span<const double> p, size_t tests);

// How many pairs are needed so that, with `tests` tests, the most extreme result of a test is significant:
// ceil(log2(tests / alpha)). 0 without tests.
size_t least_pairs(size_t tests, double alpha);

// How many numbers an interval may leave out at each end of the sorted numbers. The rest must cover the true
// shift with probability `confidence`. walsh_cut() is for the Walsh averages of n samples, moses_cut() for
// the differences between the samples of two sides.
// The result is computed from the exact null distribution of the matching test, for large n from its normal
// approximation. Absent if even the interval from the smallest to the largest number covers the shift with
// too low a probability.
std::optional<size_t> walsh_cut(size_t n, double confidence);
std::optional<size_t> moses_cut(size_t first, size_t second, double confidence);

}  // namespace penstock
