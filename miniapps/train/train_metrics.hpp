// Declares the metrics that records of `train` have.
#pragma once

#include "datagen/staging/overlay.hpp"
#include "io_backends/core/metric.hpp"
#include "miniapps/checkpoint/saving_metrics.hpp"
#include "miniapps/pipeline/accelerator_metrics.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/record/shared_metrics.hpp"

namespace penstock::train_metrics {

using shared_metrics::kPeakMemory;
using shared_metrics::kTierBytesRead;
using shared_metrics::kWall;

inline constexpr MetricInfo kSampleRate{"samples_per_s", "1/s", Better::higher, "run", kHeadline};
inline constexpr MetricInfo kTimeToDurable{"checkpoint_durable_s", "s", Better::lower, "checkpoint"};
inline constexpr MetricInfo kPayloadRate{"payload_bytes_per_s", "B/s", Better::higher};
inline constexpr MetricInfo kSteps{"steps", "1", Better::neither, "run", kHeadline};
inline constexpr MetricInfo kPictureWarnings{"picture_warnings.*", "1", Better::lower};
inline constexpr MetricInfo kSkippedSamples{"skipped_samples", "1", Better::lower, "run", kHeadline};
inline constexpr MetricInfo kDroppedTail{"dropped_tail_samples", "1", Better::lower, "run", kHeadline};
inline constexpr MetricInfo kModelBytes{"checkpoint_bytes", "B", Better::neither, "run", kHeadline};
inline constexpr MetricInfo kFileReads{"file_reads", "1", Better::neither, "run", kHeadline};
inline constexpr MetricInfo kFileReadsOf{"file_reads.*", "1"};
inline constexpr MetricInfo kPayload{"payload_bytes", "B"};
inline constexpr MetricInfo kFirstBatch{"first_batch_s", "s", Better::lower};
inline constexpr MetricInfo kInputWait{"input_wait_s", "s", Better::lower};
inline constexpr MetricInfo kStageBusy{"stage_busy_s.*", "s"};
inline constexpr MetricInfo kStageStarved{"stage_starved_s.*", "s"};
inline constexpr MetricInfo kStageBlocked{"stage_blocked_s.*", "s"};
inline constexpr MetricInfo kLost{"lost_s.*", "s", Better::lower};
inline constexpr MetricInfo kAccelerators{"accelerators", "1"};
inline constexpr MetricInfo kUtilization{"accelerator_utilization", "1", Better::higher};
inline constexpr MetricInfo kLeastUtilization{"accelerator_utilization_min", "1", Better::higher};
inline constexpr MetricInfo kUtilizationDlio{"au_dlio", "1", Better::higher};
inline constexpr MetricInfo kOvershoot{"step_overshoot", "1", Better::lower};
inline constexpr MetricInfo kStragglerRank{"straggler_rank", "1"};
inline constexpr MetricInfo kStragglerSteps{"straggler_steps", "1"};
inline constexpr MetricInfo kFileRead{"file_read_s", "s", Better::lower};
inline constexpr MetricInfo kPublishedRate{"read_published_bytes_per_s", "B/s"};
inline constexpr MetricInfo kCorrectedRate{"read_corrected_bytes_per_s", "B/s", Better::higher};
inline constexpr MetricInfo kValidationPasses{"validation_passes", "1"};
inline constexpr MetricInfo kValidationSamples{"validation_samples", "1"};
inline constexpr MetricInfo kValidation{"validation_s", "s", Better::lower};
inline constexpr MetricInfo kModelSave{"checkpoint_s", "s", Better::lower, "checkpoint"};
inline constexpr MetricInfo kFinalize{"checkpoint_finalize_s", "s", Better::lower};
inline constexpr MetricInfo kSpans{"timeline_spans", "1"};
inline constexpr MetricInfo kDroppedSpans{"timeline_dropped_spans", "1", Better::lower};
inline constexpr MetricInfo kReadSummed{"read_summed_s", "s"};
inline constexpr MetricInfo kReadMerged{"read_merged_s", "s"};
inline constexpr MetricInfo kTrainMerged{"train_merged_s", "s"};
inline constexpr MetricInfo kReadShare{"read_share", "1"};
inline constexpr MetricInfo kReadTrainOverlap{"read_train_overlap_s", "s"};
inline constexpr MetricInfo kReadSummedRate{"read_summed_bytes_per_s", "B/s"};
inline constexpr MetricInfo kReadMergedRate{"read_merged_bytes_per_s", "B/s"};
inline constexpr MetricInfo kRestartChoose{"restart_choose_s", "s", Better::lower};
inline constexpr MetricInfo kRestart{"restart_s", "s", Better::lower};
inline constexpr MetricInfo kRestartBytes{"restart_bytes", "B"};
inline constexpr MetricInfo kInputAlone{"input_alone_s", "s", Better::lower};
inline constexpr MetricInfo kInputOverlap{"input_overlap", "1", Better::higher};
inline constexpr MetricInfo kEpochDeviceBytes{"epoch_device_bytes_fraction", "1", Better::neither, "epoch"};
inline constexpr MetricInfo kAcceleratorsFed{"accelerators_fed", "1", Better::higher};
inline constexpr MetricInfo kWithOneMore{"utilization_with_one_more", "1"};

inline constexpr MetricInfo kMainMetric[] = {kSampleRate};
inline constexpr MetricInfo kStepMetrics[] = {
    kPayloadRate,     kWall,        kPeakMemory, kTimeToDurable, kSteps,        kSkippedSamples,
    kPictureWarnings, kDroppedTail, kModelBytes, kFileReads,     kFileReadsOf,  kPayload,
    kFirstBatch,      kInputWait,   kStageBusy,  kStageStarved,  kStageBlocked, kLost};
inline constexpr MetricInfo kAcceleratorMetrics[] = {kAccelerators,    kUtilization,     kLeastUtilization,
                                                     kUtilizationDlio, kOvershoot,       kStragglerRank,
                                                     kStragglerSteps,  kAcceleratorsFed, kWithOneMore};
inline constexpr MetricInfo kFileMetrics[] = {kFileRead,         kPublishedRate,     kCorrectedRate,
                                              kValidationPasses, kValidationSamples, kValidation,
                                              kModelSave,        kFinalize};
inline constexpr MetricInfo kTimelineMetrics[] = {
    kSpans,     kDroppedSpans,     kReadSummed,     kReadMerged,    kTrainMerged,
    kReadShare, kReadTrainOverlap, kReadSummedRate, kReadMergedRate};
inline constexpr MetricInfo kRestartMetrics[] = {kRestartChoose, kRestart,      kRestartBytes,
                                                 kInputAlone,    kInputOverlap, kEpochDeviceBytes};
inline constexpr MetricInfo kJobMetrics[] = {kTierBytesRead, kOverlayBytesRead, kRankRatesOfRun.least,
                                             kRankRatesOfRun.median, kRankRatesOfRun.most};
inline constexpr auto kAll = joined_tables(
    kMainMetric, saving_metrics::kPerCheckpoint, kStepMetrics, kAcceleratorMetrics, kFileMetrics,
    kTimelineMetrics, kRestartMetrics, kJobMetrics, saving_metrics::kPerRun, accelerator_metrics::kAll);

}  // namespace penstock::train_metrics
