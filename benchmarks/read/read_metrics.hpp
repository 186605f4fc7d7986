// The metrics in a record of `penstock read`.
#pragma once

#include <string_view>

#include "datagen/staging/overlay.hpp"
#include "io_backends/core/metric.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/record/shared_metrics.hpp"

namespace penstock::read_metrics {

using shared_metrics::kTierBytesRead;

// The parameter of the option --accelerator-rate. Absent if the option was not given.
inline constexpr std::string_view kAcceleratorRate = "accelerator_rate";

inline constexpr MetricInfo kSampleRate{"samples_per_s", "1/s", Better::higher, "repeat"};
inline constexpr MetricInfo kPayloadRate{"payload_bytes_per_s", "B/s", Better::higher, "repeat", kHeadline};
inline constexpr MetricInfo kPictureWarnings{"picture_warnings.*", "1", Better::lower, "repeat"};
inline constexpr MetricInfo kErrors{"errors", "1", Better::lower, "run", kHeadline};
inline constexpr MetricInfo kCalls{"calls.*", "1", Better::neither, "repeat", kHeadline};
inline constexpr MetricInfo kCallP50{"call_ns_p50.*", "ns", Better::lower, "repeat", !kHeadline, 50};
inline constexpr MetricInfo kCallP99{"call_ns_p99.*", "ns", Better::lower, "repeat", !kHeadline, 99};
inline constexpr MetricInfo kCallP999{"call_ns_p999.*", "ns", Better::lower, "repeat", !kHeadline, 99.9};
inline constexpr MetricInfo kFirstDoneRate{"bytes_per_s_first_done", "B/s", Better::higher, "repeat"};
inline constexpr MetricInfo kStonewallRate{"stonewall_bytes_per_s", "B/s", Better::higher, "repeat"};
inline constexpr MetricInfo kReadCallRate{"read_call_bytes_per_s", "B/s", Better::higher, "repeat"};
inline constexpr MetricInfo kDeviceRate{"device_bytes_per_s", "B/s", Better::neither, "repeat"};
inline constexpr MetricInfo kOfferedRate{"offered_samples_per_s", "1/s", Better::neither, "repeat"};
inline constexpr MetricInfo kKeptUpFraction{"kept_up", "1", Better::higher, "repeat"};
inline constexpr MetricInfo kWall{"wall_s", "s", Better::neither, "repeat"};
inline constexpr MetricInfo kPayloadBytes{"payload_bytes", "B", Better::neither, "repeat"};
// The processor time of all threads of all ranks in the measured run. Without that of the kernel's own
// threads.
inline constexpr MetricInfo kCpuTime{"cpu_s", "s", Better::lower, "repeat"};
inline constexpr MetricInfo kLatencyP10{"latency_ns_p10", "ns", Better::lower, "repeat", !kHeadline, 10};
inline constexpr MetricInfo kLatencyP25{"latency_ns_p25", "ns", Better::lower, "repeat", !kHeadline, 25};
inline constexpr MetricInfo kLatencyP75{"latency_ns_p75", "ns", Better::lower, "repeat", !kHeadline, 75};
inline constexpr MetricInfo kLatencyP90{"latency_ns_p90", "ns", Better::lower, "repeat", !kHeadline, 90};
inline constexpr MetricInfo kLatencyP50{"latency_ns_p50", "ns", Better::lower, "repeat", !kHeadline, 50};
inline constexpr MetricInfo kLatencyP95{"latency_ns_p95", "ns", Better::lower, "repeat", !kHeadline, 95};
inline constexpr MetricInfo kLatencyP99{"latency_ns_p99", "ns", Better::lower, "repeat", !kHeadline, 99};
inline constexpr MetricInfo kLatencyP999{"latency_ns_p999", "ns", Better::lower, "repeat", !kHeadline, 99.9};
inline constexpr MetricInfo kLateP50{"late_ns_p50", "ns", Better::lower, "repeat", !kHeadline, 50};
inline constexpr MetricInfo kLateP99{"late_ns_p99", "ns", Better::lower, "repeat", !kHeadline, 99};
inline constexpr MetricInfo kScaling{"scaling", "1", Better::higher, "repeat"};
inline constexpr MetricInfo kBaselineRate{"baseline_samples_per_s", "1/s", Better::neither, "repeat"};
inline constexpr MetricInfo kCeilingRate{"ceiling_bytes_per_s", "B/s", Better::neither};
inline constexpr MetricInfo kCeilingFraction{"ceiling_fraction", "1", Better::higher, "repeat"};

// Metrics for how long the calls of a back end took, one for each percentile. The next two tables have those
// for latencies and for late starts.
inline constexpr MetricInfo kCallMetrics[] = {kCallP50, kCallP99, kCallP999};
inline constexpr MetricInfo kLatencyMetrics[] = {kLatencyP10, kLatencyP25, kLatencyP50, kLatencyP75,
                                                 kLatencyP90, kLatencyP95, kLatencyP99, kLatencyP999};
inline constexpr MetricInfo kLatenessMetrics[] = {kLateP50, kLateP99};

inline constexpr MetricInfo kCellMetrics[] = {
    kSampleRate,      kPayloadRate, kErrors,         kCalls,         kCallP50,
    kCallP99,         kCallP999,    kFirstDoneRate,  kStonewallRate, kReadCallRate,
    kDeviceRate,      kOfferedRate, kKeptUpFraction, kWall,          kPayloadBytes,
    kLatencyP50,      kLatencyP95,  kLatencyP99,     kLatencyP999,   kLateP50,
    kLateP99,         kScaling,     kBaselineRate,   kCeilingRate,   kCeilingFraction,
    kPictureWarnings, kCpuTime,     kLatencyP10,     kLatencyP25,    kLatencyP75,
    kLatencyP90};
inline constexpr MetricInfo kJobMetrics[] = {kRankRatesOfRepeat.least, kRankRatesOfRepeat.median,
                                             kRankRatesOfRepeat.most, kTierBytesRead, kOverlayBytesRead};
inline constexpr auto kAll = joined_tables(kCellMetrics, kJobMetrics);

}  // namespace penstock::read_metrics
