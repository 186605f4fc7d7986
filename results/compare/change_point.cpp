#include "results/compare/change_point.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "io_backends/core/random.hpp"
#include "results/compare/significance.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

constexpr size_t kEnoughExtremeOrders = 20;

// The rank of each value, minus the mean of all ranks, so that the results sum to 0. Equal values share the
// mean of their ranks.
std::vector<double> centred_ranks(std::span<const double> values) {
  const double mean = (double(values.size()) + 1) / 2;
  std::vector<double> ranks;
  for (const size_t doubled : doubled_ranks(values)) ranks.push_back(double(doubled) / 2 - mean);
  return ranks;
}

struct LargestSum {
  size_t index = kLeastSegmentValues;
  double sum = 0;
};

LargestSum largest_sum(std::span<const double> ranks) {
  LargestSum largest;
  double sum = 0;
  for (size_t i = 0; i + kLeastSegmentValues < ranks.size(); ++i) {
    sum += ranks[i];
    if (i + 1 >= kLeastSegmentValues && std::abs(sum) > largest.sum) largest = {i + 1, std::abs(sum)};
  }
  return largest;
}

// Writes the values to `out` in a random order in which blocks of neighbours stay together. The series is
// closed to a ring and cut into blocks from a random start. Then the blocks are shuffled. `block_order` is
// scratch space with one element for each block.
void shuffle_blocks(std::span<const double> ring, size_t block, const RandomStream& draw,
                    std::vector<size_t>& block_order, std::vector<double>& out) {
  const size_t n = ring.size();
  const size_t offset = draw.below(0, n);
  std::iota(block_order.begin(), block_order.end(), size_t{0});
  for (size_t i = block_order.size(); i > 1; --i)
    std::swap(block_order[i - 1], block_order[draw.below(i, i)]);
  out.clear();
  for (const size_t start : block_order)
    for (size_t i = start * block; i < std::min(n, (start + 1) * block); ++i)
      out.push_back(ring[(offset + i) % n]);
}

}  // namespace

std::optional<ChangePoint> find_change(std::span<const double> values, uint64_t seed, size_t permutations) {
  const size_t n = values.size();
  if (n < kLeastHistoryValues) return std::nullopt;
  if (!std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); }))
    return std::nullopt;
  const std::vector<double> ranks = centred_ranks(values);
  const LargestSum observed = largest_sum(ranks);
  const size_t block = std::max<size_t>(5, n / 10);
  std::vector<size_t> block_order((n + block - 1) / block);
  std::vector<double> shuffled;
  shuffled.reserve(n);
  const RandomStream draws(seed, "change point");
  size_t extreme_orders = 0;
  size_t drawn = 0;
  while (drawn < permutations && extreme_orders < kEnoughExtremeOrders) {
    shuffle_blocks(ranks, block, draws.substream(drawn++), block_order, shuffled);
    if (largest_sum(shuffled).sum >= observed.sum) ++extreme_orders;
  }
  ChangePoint change;
  change.index = observed.index;
  change.p = extreme_orders == kEnoughExtremeOrders ? double(extreme_orders) / double(drawn)
                                                    : double(extreme_orders + 1) / double(drawn + 1);
  change.median_before = median(values.first(observed.index));
  change.median_after = median(values.subspan(observed.index));
  return change;
}

}  // namespace penstock
