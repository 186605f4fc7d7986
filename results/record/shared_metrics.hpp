// Metrics that several commands have in common.
#pragma once

#include <string_view>

#include "io_backends/core/metric.hpp"

namespace penstock::shared_metrics {

inline constexpr MetricInfo kWall{"wall_s", "s", Better::lower};
inline constexpr MetricInfo kPeakMemory{"peak_memory_bytes", "B", Better::lower};
// All bytes that the job read from the tier, including warm-up, baseline, ceilings and manifest.
inline constexpr MetricInfo kTierBytesRead{"tier_bytes_read", "B", Better::neither};

// The first of these metrics that a record has is its throughput.
inline constexpr std::string_view kThroughputMetrics[] = {"payload_bytes_per_s", "samples_per_s"};
// The series of bytes delivered in each interval.
inline constexpr std::string_view kPayloadSeries = "payload_bytes";

}  // namespace penstock::shared_metrics
