// The metrics in a record of `checkpoint bench`.
#pragma once

#include <string_view>

#include "io_backends/core/metric.hpp"
#include "miniapps/checkpoint/saving_metrics.hpp"
#include "miniapps/pipeline/accelerator_metrics.hpp"
#include "results/record/shared_metrics.hpp"

namespace penstock::bench_metrics {

inline constexpr MetricInfo kTimeToDurable{"checkpoint_durable_s", "s", Better::lower, "checkpoint",
                                           kHeadline};
inline constexpr MetricInfo kCeilingOf{"ceiling_bytes_per_s.*", "B/s", Better::higher};
inline constexpr MetricInfo kFinalize{"finalize_s", "s", Better::lower};
inline constexpr MetricInfo kWriteAmplification{"write_amplification", "1", Better::lower};

inline constexpr MetricInfo kOwnMetrics[] = {kTimeToDurable, shared_metrics::kWall, kCeilingOf, kFinalize,
                                             kWriteAmplification};
inline constexpr auto kAll = joined_tables(saving_metrics::kPerCheckpoint, kOwnMetrics,
                                           saving_metrics::kPerRun, accelerator_metrics::kAll);

// The names of the series of a run.
inline constexpr std::string_view kSlowWritten = "slow_bytes_written";
inline constexpr std::string_view kFastWritten = "fast_bytes_written";
inline constexpr std::string_view kStepsEnded = "steps_ended";

}  // namespace penstock::bench_metrics
