// The metrics in a record of `penstock generate`.
#pragma once

#include "io_backends/core/metric.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/record/shared_metrics.hpp"

namespace penstock::generate_metrics {

inline constexpr MetricInfo kSampleRate{"samples_per_s", "1/s", Better::higher};
inline constexpr MetricInfo kPayloadRate{"payload_bytes_per_s", "B/s", Better::higher, "run", kHeadline};
inline constexpr MetricInfo kAll[] = {
    kSampleRate,           kPayloadRate,           shared_metrics::kWall, shared_metrics::kPeakMemory,
    kRankRatesOfRun.least, kRankRatesOfRun.median, kRankRatesOfRun.most};

}  // namespace penstock::generate_metrics
