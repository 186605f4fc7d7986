// Declares the metrics that several commands have in common.
#pragma once

#include <string_view>

#include "io_backends/core/metric.hpp"

namespace penstock::shared_metrics {

inline constexpr MetricInfo kWall{"wall_s", "s", Better::lower};
inline constexpr MetricInfo kPeakMemory{"peak_memory_bytes", "B", Better::lower};
// All bytes that the job read from the tier, also for warm-up, baseline, ceilings and manifest.
inline constexpr MetricInfo kTierBytesRead{"tier_bytes_read", "B", Better::neither};

// The throughput of a record is the first of these metrics that the record has.
inline constexpr std::string_view kThroughputMetrics[] = {"payload_bytes_per_s", "samples_per_s"};
// The name of the series of bytes that were delivered in each interval.
inline constexpr std::string_view kPayloadSeries = "payload_bytes";

}  // namespace penstock::shared_metrics
