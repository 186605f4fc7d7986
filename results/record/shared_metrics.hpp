// Declares the metrics that several commands have in common.
#pragma once

#include <string_view>

#include "io_backends/core/metric.hpp"

namespace penstock::shared_metrics {

inline constexpr MetricInfo kWall{"wall_s", "s", Better::lower};
inline constexpr MetricInfo kPeakMemory{"peak_memory_bytes", "B", Better::lower};
// All bytes that the job read from the tier, including those for warm-up, baseline, ceilings and manifest.
inline constexpr MetricInfo kTierBytesRead{"tier_bytes_read", "B", Better::neither};

// Metrics of throughput: the first of them that a record has is its throughput.
inline constexpr std::string_view kThroughputMetrics[] = {"payload_bytes_per_s", "samples_per_s"};
// The name of the series with the bytes that were delivered in each interval of time.
inline constexpr std::string_view kPayloadSeries = "payload_bytes";

}  // namespace penstock::shared_metrics
