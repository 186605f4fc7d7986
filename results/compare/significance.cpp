#include "results/compare/significance.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "io_backends/core/random.hpp"

namespace penstock {

std::vector<size_t> doubled_ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<size_t> doubled_values(values.size());
  for (size_t from = 0; from < order.size();) {
    size_t to = from;
    while (to < order.size() && values[order[to]] == values[order[from]]) ++to;
    // Equal values share the mean of the ranks from + 1 to `to`; twice that mean is an integer.
    for (size_t i = from; i < to; ++i) doubled_values[order[i]] = from + 1 + to;
    from = to;
  }
  return doubled_values;
}

namespace {

// The probability of a standard normal value above z.
double upper_tail(double z) {
  return std::erfc(z / std::sqrt(2.0)) / 2;
}

// The distribution of a sum to which each of `ranks` is added with probability 1/2. Entry s of the result is
// the probability that the sum is s.
std::vector<double> subset_sum_chances(std::span<const size_t> ranks) {
  const size_t most_sum = std::accumulate(ranks.begin(), ranks.end(), size_t{0});
  std::vector<double> chances(most_sum + 1, 0.0);
  chances[0] = 1;
  size_t largest_sum_so_far = 0;
  for (const size_t rank : ranks) {
    largest_sum_so_far += rank;
    for (size_t sum = largest_sum_so_far + 1; sum-- > 0;)
      chances[sum] = (chances[sum] + (sum >= rank ? chances[sum - rank] : 0)) / 2;
  }
  return chances;
}

// The distribution of the sum of `count` of the ranks, if all choices are equally likely. Entry s of the
// result is the probability that the sum is s.
std::vector<double> choice_sum_chances(std::span<const size_t> ranks, size_t count) {
  const size_t most_sum = std::accumulate(ranks.begin(), ranks.end(), size_t{0});
  // chances[k][s] is the probability that k of the ranks seen so far were chosen and have the sum s. If k
  // ranks are chosen already, rank i is chosen too with probability (count - k) / (ranks left). This way
  // needs no binomial coefficients, which would overflow.
  std::vector<std::vector<double>> chances(count + 1, std::vector<double>(most_sum + 1, 0.0));
  chances[0][0] = 1;
  size_t largest_sum_so_far = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto ranks_left = double(ranks.size() - i);
    for (size_t chosen = std::min(i, count) + 1; chosen-- > 0;) {
      const double probability = double(count - chosen) / ranks_left;
      std::vector<double>& from = chances[chosen];
      for (size_t sum = 0; sum <= largest_sum_so_far; ++sum) {
        if (from[sum] == 0) continue;
        if (chosen < count) chances[chosen + 1][sum + ranks[i]] += from[sum] * probability;
        from[sum] *= 1 - probability;
      }
    }
    largest_sum_so_far += ranks[i];
  }
  return chances[count];
}

double tail_from(const std::vector<double>& chances, size_t from) {
  double tail = 0;
  for (size_t sum = chances.size(); sum-- > from;) tail += chances[sum];
  return std::min(tail, 1.0);
}

// How many of the sorted numbers an interval may leave out at each end: the largest r for which the
// probability of a sum of at most r is within (1 - confidence) / 2. chances[s] is the probability of the sum
// s.
std::optional<size_t> cut_of(const std::vector<double>& chances, double confidence) {
  double tail = 0;
  size_t cut = 0;
  for (; cut < chances.size(); ++cut) {
    tail += chances[cut];
    if (tail > (1 - confidence) / 2) break;
  }
  if (cut == 0) return std::nullopt;
  return cut - 1;
}

std::optional<size_t> cut_of(double mean, double deviation, double confidence) {
  const double cut = std::floor(mean - inverse_normal((1 + confidence) / 2) * deviation - 0.5);
  if (cut < 0) return std::nullopt;
  return size_t(cut);
}

std::vector<size_t> first_numbers(size_t n) {
  std::vector<size_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), size_t{1});
  return numbers;
}

}  // namespace

double signed_rank_p(std::span<const double> differences) {
  std::vector<double> magnitudes;
  magnitudes.reserve(differences.size());
  for (const double difference : differences) magnitudes.push_back(std::abs(difference));
  const std::vector<size_t> ranks = doubled_ranks(magnitudes);
  std::vector<size_t> signed_ranks;
  size_t sum_above_zero = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (magnitudes[i] == 0) continue;
    signed_ranks.push_back(ranks[i]);
    if (differences[i] > 0) sum_above_zero += ranks[i];
  }
  if (signed_ranks.empty()) return 1;
  if (signed_ranks.size() <= kMostExactPairs)
    return tail_from(subset_sum_chances(signed_ranks), sum_above_zero);
  double sum = 0;
  double squares = 0;
  for (const size_t rank : signed_ranks) {
    sum += double(rank);
    squares += double(rank) * double(rank);
  }
  return upper_tail((double(sum_above_zero) - sum / 2 - 1) / (std::sqrt(squares) / 2));
}

double rank_sum_p(std::span<const double> first, std::span<const double> second) {
  if (first.empty() || second.empty()) return 1;
  std::vector<double> values(second.begin(), second.end());
  values.insert(values.end(), first.begin(), first.end());
  const std::vector<size_t> ranks = doubled_ranks(values);
  const size_t sum = std::accumulate(ranks.begin(), ranks.begin() + ptrdiff_t(second.size()), size_t{0});
  if (values.size() <= kMostExactSamples) return tail_from(choice_sum_chances(ranks, second.size()), sum);
  const auto m = double(first.size());
  const auto n = double(second.size());
  const double mean = m + n + 1;  // the mean of one doubled rank
  double variance = 0;
  for (const size_t rank : ranks) variance += (double(rank) - mean) * (double(rank) - mean);
  variance *= m * n / ((m + n) * (m + n - 1));
  if (variance == 0) return 1;
  return upper_tail((double(sum) - n * mean - 1) / std::sqrt(variance));
}

std::vector<double> holm(std::span<const double> p, size_t tests) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest_so_far = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto tests_left = double(std::max(tests, p.size()) - i);
    largest_so_far = std::max(largest_so_far, std::min(1.0, tests_left * p[order[i]]));
    adjusted[order[i]] = largest_so_far;
  }
  return adjusted;
}

size_t least_pairs(size_t tests, double alpha) {
  if (tests == 0) return 0;
  size_t pairs = 0;
  for (double most_extreme = 1; most_extreme * double(tests) > alpha; most_extreme /= 2) ++pairs;
  return pairs;
}

std::optional<size_t> walsh_cut(size_t n, double confidence) {
  if (n <= kMostExactPairs) return cut_of(subset_sum_chances(first_numbers(n)), confidence);
  const auto count = double(n);
  return cut_of(count * (count + 1) / 4, std::sqrt(count * (count + 1) * (2 * count + 1) / 24), confidence);
}

std::optional<size_t> moses_cut(size_t first, size_t second, double confidence) {
  if (first == 0 || second == 0) return std::nullopt;
  if (first + second <= kMostExactSamples) {
    std::vector<double> chances = choice_sum_chances(first_numbers(first + second), second);
    // Shift the distribution so that the smallest possible sum of ranks is at index 0. The sum becomes the
    // statistic U.
    chances.erase(chances.begin(), chances.begin() + ptrdiff_t(second * (second + 1) / 2));
    return cut_of(chances, confidence);
  }
  const auto m = double(first);
  const auto n = double(second);
  return cut_of(m * n / 2, std::sqrt(m * n * (m + n + 1) / 12), confidence);
}

}  // namespace penstock
