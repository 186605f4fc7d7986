// Chooses the files that are worth copying to the fast tier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "miniapps/staging/speed.hpp"

namespace penstock {

struct StagingItem {
  uint64_t bytes = 0;  // space that the file takes on the fast tier
  // The seconds per epoch that are saved if only this file is staged: its reading time on the slow tier minus
  // that on the fast tier.
  double saved_s = 0;
  int64_t first_ns = 0;  // when it was first read
  // The reads of this file in one epoch: `slow` if it stays on the slow tier, `fast` if it is staged.
  ReadDemand slow{};
  ReadDemand fast{};
};

// A choice: indices of items, in ascending order.
using Chosen = std::vector<size_t>;

// Adds up the reads on each tier in one epoch if the chosen items are on the fast tier.
void add_demands(std::span<const StagingItem> items, const Chosen& chosen, ReadDemand& slow,
                 ReadDemand& fast);

// The length of an epoch, in seconds, with these demands on the two tiers.
using EpochModel = std::function<double(const ReadDemand& slow, const ReadDemand& fast)>;

struct StagingProblem {
  std::span<const StagingItem> items;
  uint64_t capacity = 0;
  EpochModel epoch;

  double epoch_with(const Chosen& chosen) const;
};

// A way to choose files. Each policy skips an item that does not fit into the space left, and continues.
using StagingPolicy = std::function<Chosen(const StagingProblem&)>;
// Returns the policy of this name. "density": first the items that save most per byte, as long as each makes
// the epoch shorter. "threshold=2MB": all files below a size, the smallest first (tf-Darshan's rule).
// "best-single": the one file that saves most. "first-come": in the order of their first read, whatever their
// size, like a cache without eviction.
Result<StagingPolicy> parse_policy(std::string_view text);

// The policy "density" takes the best of by_density(), best_single() and best_fit(). by_density() takes items
// in descending order of saved_s / bytes. It stops where the epoch is shortest, or earlier if the epoch is
// then at most 0.1% longer.
Chosen by_density(const StagingProblem& problem);
Chosen best_single(const StagingProblem& problem);
inline constexpr size_t kExactItems = 10'000;
inline constexpr uint64_t kExactUnits = 10'000;
// Returns the items that fit and have the greatest sum of saved_s. Exact if the capacity is at most
// kExactUnits bytes; otherwise sizes are rounded up to 1/kExactUnits of the capacity. Chooses nothing if
// there are more than kExactItems items.
Chosen best_fit(const StagingProblem& problem);

}  // namespace penstock
