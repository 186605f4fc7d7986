// The rates of the single ranks of a job: what is measured, how it is stored in a record, read back and
// described.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/metric.hpp"
#include "results/cells/cells.hpp"

namespace penstock {

class Trial;
struct Output;
struct Record;

// What one rank did in one run.
struct RankFigures {
  uint64_t bytes = 0;
  double wall_s = 0;  // measured by the rank's own clock

  double bytes_per_s() const { return wall_s > 0 ? double(bytes) / wall_s : 0.0; }
};

// Three metrics: the rates of the slowest, the median and the fastest rank.
struct RankMetrics {
  MetricInfo least;
  MetricInfo median;
  MetricInfo most;
};
inline constexpr RankMetrics kRankRatesOfRun{{"rank_min_bytes_per_s", "B/s", Better::higher},
                                             {"rank_median_bytes_per_s", "B/s", Better::higher},
                                             {"rank_max_bytes_per_s", "B/s", Better::higher}};
inline constexpr RankMetrics kRankRatesOfRepeat{{"rank_min_bytes_per_s", "B/s", Better::higher, "repeat"},
                                                {"rank_median_bytes_per_s", "B/s", Better::higher, "repeat"},
                                                {"rank_max_bytes_per_s", "B/s", Better::higher, "repeat"}};

// Adds one value of each of `metrics` to the trial. If the name of a metric has a star (it is a family of
// metrics), `part` replaces the star. Adds nothing if `ranks` is empty.
void record_ranks(std::span<const RankFigures> ranks, const RankMetrics& metrics, Trial& trial,
                  std::string_view part = "");

// The rates of the slowest, the median and the fastest rank, in bytes per second; all 0 without ranks.
ValueRange rank_rates(std::span<const RankFigures> ranks);

// Reads the rates that record_ranks() stored, each as the median of the repeats. `prefix` is the start of
// their names.
ValueRange rank_rates(const Record& record, std::string_view prefix = "");

// A sentence that reports ranks whose rates differ by more than 10% of the median rate: "<whose> lie 30%
// apart: the slowest at 80.0 MiB/s, the fastest at 110.0". "" if they differ less, or if no rates are known.
std::string rank_difference_text(std::string_view whose, const ValueRange& rates, const Output& output);

}  // namespace penstock
