// The names of the metrics that `profile export --to records` computes from a session.
#pragma once

#include "io_backends/core/metric.hpp"
#include "results/record/shared_metrics.hpp"

namespace penstock::session_metrics {

using shared_metrics::kTierBytesRead;

inline constexpr MetricInfo kPayloadRate{"payload_bytes_per_s", "B/s", Better::higher};
inline constexpr MetricInfo kPayloadRateOfEpoch{"payload_bytes_per_s", "B/s", Better::higher, "repeat"};
inline constexpr MetricInfo kReadCallRate{"read_call_bytes_per_s", "B/s", Better::higher};
inline constexpr MetricInfo kPayloadBytes{"payload_bytes", "B"};
inline constexpr MetricInfo kWallTime{"wall_s", "s"};
inline constexpr MetricInfo kBytesMapped{"tier_bytes_mapped", "B"};
inline constexpr MetricInfo kBytesWritten{"tier_bytes_written", "B"};
inline constexpr MetricInfo kReadTime{"read_s", "s"};
inline constexpr MetricInfo kReads{"reads", "1"};
inline constexpr MetricInfo kFiles{"files", "1"};

inline constexpr MetricInfo kAll[] = {
    kPayloadRate,  kPayloadRateOfEpoch, kReadCallRate, kPayloadBytes, kWallTime,     kBytesMapped,
    kBytesWritten, kReadTime,           kReads,        kFiles,        kTierBytesRead};

}  // namespace penstock::session_metrics
