// Metrics that several commands have alike.
#pragma once

#include "io_backends/core/metric.hpp"

namespace penstock::shared_metrics {

inline constexpr MetricInfo kWall{"wall_s", "s", Better::lower};
inline constexpr MetricInfo kPeakMemory{"peak_memory_bytes", "B", Better::lower};
// All that the job read from the tier: warm-up, baseline, ceilings and manifest included.
inline constexpr MetricInfo kTierBytesRead{"tier_bytes_read", "B", Better::neither};

}  // namespace penstock::shared_metrics
