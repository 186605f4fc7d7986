// What the ranks of a job did one by one, and how a record says it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "results/rank_spread.hpp"

namespace penstock {

class Trial;

// One rank of several, in one run.
struct RankFigures {
  std::uint64_t bytes = 0;
  double wall_s = 0;  // by its own clock

  double bytes_per_s() const { return wall_s > 0 ? static_cast<double>(bytes) / wall_s : 0.0; }
};

// One sample of "<prefix>rank_min_bytes_per_s", "..median.." and "..max.."; nothing without ranks.
void record_ranks(std::span<const RankFigures> ranks, std::string_view prefix, std::string_view per,
                  Trial& trial);

RankRates rank_rates(std::span<const RankFigures> ranks);

}  // namespace penstock
