// What the ranks of a job did one by one, and how a record says it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "io_backends/core/metric.hpp"
#include "results/cells/rank_spread.hpp"

namespace penstock {

class Trial;

// One rank of several, in one run.
struct RankFigures {
  std::uint64_t bytes = 0;
  double wall_s = 0;  // by its own clock

  double bytes_per_s() const { return wall_s > 0 ? static_cast<double>(bytes) / wall_s : 0.0; }
};

// The rates of the slowest, the median and the fastest rank.
struct RankMetrics {
  MetricInfo least;
  MetricInfo median;
  MetricInfo most;
};
inline constexpr RankMetrics kRanksOfRun{{"rank_min_bytes_per_s", "B/s", Better::higher},
                                         {"rank_median_bytes_per_s", "B/s", Better::higher},
                                         {"rank_max_bytes_per_s", "B/s", Better::higher}};
inline constexpr RankMetrics kRanksOfRepeat{{"rank_min_bytes_per_s", "B/s", Better::higher, "repeat"},
                                            {"rank_median_bytes_per_s", "B/s", Better::higher, "repeat"},
                                            {"rank_max_bytes_per_s", "B/s", Better::higher, "repeat"}};

// One sample of each of `metrics`, which may be families with `part` for the star; nothing without ranks.
void record_ranks(std::span<const RankFigures> ranks, const RankMetrics& metrics, Trial& trial,
                  std::string_view part = "");

RankRates rank_rates(std::span<const RankFigures> ranks);

}  // namespace penstock
