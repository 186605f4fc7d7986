// Which files are worth their place on the fast tier.
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
  std::uint64_t bytes = 0;    // that it takes on the fast tier
  double saved_s = 0;         // an epoch, where it alone is moved: what reads cost there less than here
  std::int64_t first_ns = 0;  // when it was first read
  Demand slow{};  // what it asks of the slow tier in an epoch, and of the fast one once it is there
  Demand fast{};
};

// Of a choice, in rising order: indices of items.
using Chosen = std::vector<std::size_t>;

// Adds up what is asked of either tier in an epoch once the chosen ones are on the fast one.
void add_demands(std::span<const StagingItem> items, const Chosen& chosen, Demand& slow, Demand& fast);

// How long an epoch takes with such demands left on each tier.
using EpochOf = std::function<double(const Demand& slow, const Demand& fast)>;

struct StagingProblem {
  std::span<const StagingItem> items;
  std::uint64_t capacity = 0;
  EpochOf epoch;

  double epoch_with(const Chosen& chosen) const;
};

// A way to choose. Each passes over what does not fit into what is left, and goes on.
using StagingPolicy = std::function<Chosen(const StagingProblem&)>;
// "density": most saved for a byte first, as far as it makes the epoch shorter. "threshold=2MB": all files
// below a size, the smallest first: tf-Darshan's rule. "best-single": the one file that saves most.
// "first-come": as they were first read, whatever their size: what a cache without eviction comes to.
Result<StagingPolicy> parse_policy(std::string_view text);

// The parts of `density`. By density in the order of saved_s / bytes, cut where the epoch is shortest (the
// shortest such list, to a thousandth).
Chosen by_density(const StagingProblem& problem);
Chosen best_single(const StagingProblem& problem);
// The most saved_s that fits, exactly as long as the capacity has at most kExactUnits bytes; else by sizes
// rounded up to that many parts of it. For at most kExactItems items; nothing for more.
inline constexpr std::size_t kExactItems = 10'000;
inline constexpr std::uint64_t kExactUnits = 10'000;
Chosen exactly(const StagingProblem& problem);

}  // namespace penstock
