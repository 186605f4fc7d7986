// What a record of `checkpoint bench` measures.
#pragma once

#include "io_backends/core/metric.hpp"
#include "miniapps/checkpoint/saving_metrics.hpp"
#include "miniapps/pipeline/accelerator_metrics.hpp"
#include "results/record/shared_metrics.hpp"

namespace penstock::bench_metrics {

inline constexpr MetricInfo kDurable{"checkpoint_durable_s", "s", Better::lower, "checkpoint", kHeadline};
inline constexpr MetricInfo kCeilingOf{"ceiling_bytes_per_s.*", "B/s", Better::higher};
inline constexpr MetricInfo kFinalize{"finalize_s", "s", Better::lower};
inline constexpr MetricInfo kWriteAmplification{"write_amplification", "1", Better::lower};

inline constexpr MetricInfo kOthers[] = {kDurable, shared_metrics::kWall, kCeilingOf, kFinalize,
                                         kWriteAmplification};
inline constexpr auto kAll =
    joined_tables(saving_metrics::kOfEach, kOthers, saving_metrics::kOfRun, accelerator_metrics::kAll);

}  // namespace penstock::bench_metrics
