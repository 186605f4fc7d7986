// What the ranks of a job did one by one, how a record has it, and how far they lie apart.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/metric.hpp"

namespace penstock {

class Trial;
struct Output;
struct Record;

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

// Of the slowest, the middle and the fastest rank, in bytes per second; all 0 without ranks.
struct RankRates {
  double least = 0;
  double median = 0;
  double most = 0;
};

RankRates rank_rates(std::span<const RankFigures> ranks);

// What record_ranks() put into the record with this prefix: medians of the repeats.
RankRates rank_rates(const Record& record, std::string_view prefix = "");

// "<whose> lie 30% apart: the slowest at 80.0 MiB/s, the fastest at 110.0"; "" where they end together, as
// ranks with equal work should, or nothing is known.
std::string ranks_apart(std::string_view whose, const RankRates& rates, const Output& output);

}  // namespace penstock
