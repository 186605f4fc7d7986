// The metrics of checkpoints in a result record. `train` and `checkpoint bench` both write them.
#pragma once

#include "io_backends/core/metric.hpp"

namespace penstock::saving_metrics {

// Metrics of each checkpoint.
inline constexpr MetricInfo kBlockTime{"checkpoint_block_s", "s", Better::lower, "checkpoint", kHeadline};
inline constexpr MetricInfo kBytes{"checkpoint_bytes", "B", Better::neither, "checkpoint", kHeadline};
inline constexpr MetricInfo kTimeToFast{"checkpoint_fast_s", "s", Better::lower, "checkpoint"};
inline constexpr MetricInfo kDrainRate{"drain_bytes_per_s", "B/s", Better::higher, "checkpoint"};
inline constexpr MetricInfo kQueuedDrainRate{"drain_queued_bytes_per_s", "B/s", Better::higher, "checkpoint"};
inline constexpr MetricInfo kBlockOfCeiling{"block_of_ceiling", "1", Better::lower, "checkpoint"};
inline constexpr MetricInfo kDrainOfCeiling{"drain_of_ceiling", "1", Better::higher, "checkpoint"};

// Metrics of a run. The star in the names of lost work stands for the kind of failure: "process", "node" or
// "power".
inline constexpr MetricInfo kSkips{"checkpoint_skips", "1", Better::lower, "run", kHeadline};
inline constexpr MetricInfo kSaves{"checkpoints", "1"};
inline constexpr MetricInfo kWrittenThrough{"checkpoints_written_through", "1"};
inline constexpr MetricInfo kDrained{"checkpoints_drained", "1"};
inline constexpr MetricInfo kDrainFailures{"drain_failures", "1", Better::lower};
inline constexpr MetricInfo kEvicted{"checkpoints_evicted", "1"};
inline constexpr MetricInfo kPruned{"checkpoints_pruned", "1"};
inline constexpr MetricInfo kQuarantined{"checkpoints_quarantined", "1", Better::lower};
inline constexpr MetricInfo kMostBacklog{"backlog_most_bytes", "B", Better::lower};
inline constexpr MetricInfo kDrainOverlap{"drain_overlap", "1", Better::higher};
inline constexpr MetricInfo kStepInflation{"step_inflation", "1", Better::lower};
inline constexpr MetricInfo kLostWork{"lost_work_s.*", "s", Better::lower};
inline constexpr MetricInfo kMostLostWork{"lost_work_most_s.*", "s", Better::lower};
inline constexpr MetricInfo kIntervalYoung{"checkpoint_interval_s.young", "s"};
inline constexpr MetricInfo kIntervalDaly{"checkpoint_interval_s.daly", "s"};

inline constexpr MetricInfo kStep{"step_s", "s", Better::neither, "step"};

// The metrics are in two tables, because a record of a run without a checkpoint has only those of kPerRun. A
// command inserts its own metrics between the two tables.
inline constexpr MetricInfo kPerCheckpoint[] = {kBlockTime,       kBytes,          kTimeToFast,    kDrainRate,
                                                kQueuedDrainRate, kBlockOfCeiling, kDrainOfCeiling};
inline constexpr MetricInfo kPerRun[] = {kSkips,         kSaves,         kWrittenThrough, kDrained,
                                         kDrainFailures, kEvicted,       kPruned,         kQuarantined,
                                         kMostBacklog,   kDrainOverlap,  kStepInflation,  kLostWork,
                                         kMostLostWork,  kIntervalYoung, kIntervalDaly,   kStep};

}  // namespace penstock::saving_metrics
