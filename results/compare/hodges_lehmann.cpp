#include "results/compare/hodges_lehmann.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "io_backends/core/random.hpp"
#include "results/compare/significance.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

// Maps a double to a whole number such that the order is kept. So a binary search over whole numbers ends at
// an exact double.
uint64_t ordered_bits(double value) {
  // Adding 0.0 turns -0 into 0, so that both have the same bits.
  const auto bits = std::bit_cast<uint64_t>(value + 0.0);
  return bits >> 63 == 0 ? bits | (uint64_t{1} << 63) : ~bits;
}
double double_of_bits(uint64_t bits) {
  return std::bit_cast<double>(bits >> 63 == 1 ? bits & ~(uint64_t{1} << 63) : ~bits);
}

// The k-th smallest number of a set; the smallest has k = 0. All numbers of the set are between `low` and
// `high`. The caller gives no list of the numbers, but count_up_to(limit): how many of them are at most
// `limit`.
template <class CountUpTo>
double kth_smallest(size_t k, double low, double high, CountUpTo count_up_to) {
  uint64_t from = ordered_bits(low);
  uint64_t to = ordered_bits(high);
  while (from < to) {
    const uint64_t middle = from + (to - from) / 2;
    if (count_up_to(double_of_bits(middle)) > k)
      to = middle;
    else
      from = middle + 1;
  }
  return double_of_bits(from);
}

// The median and the interval of a set of `count` numbers. The interval leaves out the `leave_out` smallest
// and the `leave_out` largest numbers. `low`, `high` and `count_up_to` describe the set, as for
// kth_smallest().
template <class CountUpTo>
Shift shift_of(size_t count, double low, double high, std::optional<size_t> leave_out,
               CountUpTo count_up_to) {
  const auto value_at = [&](size_t k) { return kth_smallest(k, low, high, count_up_to); };
  Shift shift;
  shift.estimate = count % 2 == 1 ? value_at(count / 2) : (value_at(count / 2 - 1) + value_at(count / 2)) / 2;
  if (leave_out && 2 * *leave_out < count)
    shift.interval = Interval{value_at(*leave_out), value_at(count - 1 - *leave_out)};
  return shift;
}

}  // namespace

std::optional<Shift> one_sample_shift(std::span<const double> differences, double confidence) {
  if (differences.empty()) return std::nullopt;
  const std::vector<double> x = sorted_samples(differences);
  const size_t n = x.size();
  const auto count_up_to = [&](double limit) {
    size_t count = 0;
    size_t first_above = n;  // (x[i] + x[j]) / 2 exceeds the limit for every j >= first_above
    for (size_t i = 0; i < n; ++i) {
      while (first_above > 0 && (x[i] + x[first_above - 1]) / 2 > limit) --first_above;
      if (first_above <= i) break;
      count += first_above - i;
    }
    return count;
  };
  return shift_of(n * (n + 1) / 2, x.front(), x.back(), walsh_cut(n, confidence), count_up_to);
}

std::optional<Shift> two_sample_shift(std::span<const double> first, std::span<const double> second,
                                      double confidence) {
  if (first.empty() || second.empty()) return std::nullopt;
  const std::vector<double> x = sorted_samples(first);
  const std::vector<double> y = sorted_samples(second);
  const auto count_up_to = [&](double limit) {
    size_t count = 0;
    size_t within_limit = 0;
    for (const double from : x) {
      while (within_limit < y.size() && y[within_limit] - from <= limit) ++within_limit;
      count += within_limit;
    }
    return count;
  };
  return shift_of(x.size() * y.size(), y.front() - x.back(), y.back() - x.front(),
                  moses_cut(x.size(), y.size(), confidence), count_up_to);
}

double detectable_shift(const Interval& interval95, double level, double least, double power) {
  const double standard_error = (interval95.high - interval95.low) / (2 * inverse_normal(0.975));
  const double z_power = inverse_normal(power);
  return std::max((inverse_normal(1 - level) + z_power) * standard_error, least + z_power * standard_error);
}

}  // namespace penstock
