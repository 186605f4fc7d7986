#include "miniapps/train/train_record.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/train/published_bandwidth.hpp"
#include "miniapps/train/train_cell.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "results/cells/rank_figures.hpp"

namespace penstock {
namespace {

void record_ranks(const TrainOutcome& outcome, Trial& trial) {
  penstock::record_ranks(outcome.ranks, kRanksOfRun, trial);
  if (!outcome.utilizations.empty())
    trial.sample(train_metrics::kLeastUtilization,
                 *std::min_element(outcome.utilizations.begin(), outcome.utilizations.end()));
  const auto slowest = std::max_element(outcome.last_ones.begin(), outcome.last_ones.end());
  if (slowest == outcome.last_ones.end() || outcome.steps == 0) return;
  trial.sample(train_metrics::kStragglerRank, static_cast<double>(slowest - outcome.last_ones.begin()));
  trial.sample(train_metrics::kStragglerSteps, static_cast<double>(*slowest));
}

void record_times(const TrainOutcome& outcome, Trial& trial) {
  const TrainingFigures& figures = outcome.figures;
  trial.sample(shared_metrics::kWall, figures.wall_s);
  trial.sample(train_metrics::kSampleRate, figures.samples / figures.wall_s);
  trial.sample(train_metrics::kPayloadRate, figures.payload_bytes / figures.wall_s);
  trial.sample(train_metrics::kFirstBatch, figures.first_batch_s);
  trial.sample(train_metrics::kInputWait, figures.input_wait_s);
  for (const StageTally& stage : outcome.stages) {
    trial.sample(train_metrics::kStageBusy, stage.stage, stage.busy_s);
    trial.sample(train_metrics::kStageStarved, stage.stage, stage.starved_s);
    trial.sample(train_metrics::kStageBlocked, stage.stage, stage.blocked_s);
  }
  for (const LostTime& part : outcome.lost)
    if (outcome.ranks.size() > 1 || part.to != "straggler")
      trial.sample(train_metrics::kLost, part.to, part.seconds);
}

// Over the seconds that the workers of a rank read, the mean of ranks.
void record_studied(const TrainOutcome& outcome, const FilePlan& plan, Trial& trial) {
  if (plan.bytes == nullptr || outcome.stages.empty()) return;
  const double read_s =
      (outcome.stages.front().busy_s + outcome.validation.read_s) / static_cast<double>(outcome.ranks.size());
  trial.sample(train_metrics::kFileRead, read_s);
  const StudiedBytes bytes = plan.bytes(plan, outcome.training_files, outcome.validation.files);
  trial.sample(train_metrics::kPublishedRate, published_bandwidth(bytes.published, read_s));
  trial.sample(train_metrics::kCorrectedRate, published_bandwidth(bytes.corrected, read_s));
}

void record_files(const TrainOutcome& outcome, Trial& trial) {
  const ValidationFigures& validation = outcome.validation;
  const auto count = [&](const MetricInfo& metric, std::uint64_t value) {
    trial.sample(metric, static_cast<double>(value));
  };
  count(train_metrics::kFileReads, outcome.training_files + validation.files);
  trial.sample(train_metrics::kFileReadsOf, "training", static_cast<double>(outcome.training_files));
  trial.sample(train_metrics::kFileReadsOf, "validation", static_cast<double>(validation.files));
  if (validation.passes == 0) return;
  count(train_metrics::kValidationPasses, validation.passes);
  count(train_metrics::kValidationSamples, validation.samples);
  trial.sample(train_metrics::kValidation, outcome.figures.aside_s);
}

void record_checkpoints(const CheckpointFigures& checkpoints, Trial& trial) {
  trial.sample(saving_metrics::kSaves, static_cast<double>(checkpoints.seconds.size()));
  trial.sample(train_metrics::kModelBytes, static_cast<double>(checkpoints.bytes));
  for (const double seconds : checkpoints.seconds) trial.sample(train_metrics::kModelSave, seconds);
}

// Part of the spans says nothing about all of the run.
void record_timeline(const TimelineFigures& figures, const TrainSetup& setup, Trial& trial) {
  trial.sample(train_metrics::kSpans, static_cast<double>(figures.spans));
  trial.sample(train_metrics::kDroppedSpans, static_cast<double>(figures.dropped));
  if (figures.dropped > 0) {
    warn("the timeline lacks " + format_count(figures.dropped) + " of " +
         format_count(figures.spans + figures.dropped) + " spans, for which --timeline-memory " +
         format_size(setup.timeline_memory) + " had no room: what merged times it would give is not told");
    return;
  }
  const auto bytes = static_cast<double>(figures.read_bytes);
  trial.sample(train_metrics::kReadSummed, figures.read_summed_s);
  trial.sample(train_metrics::kReadMerged, figures.read_merged_s);
  trial.sample(train_metrics::kTrainMerged, figures.train_merged_s);
  trial.sample(train_metrics::kReadShare, figures.read_share);
  trial.sample(train_metrics::kReadTrainOverlap, figures.read_train_overlap_s);
  if (figures.read_merged_s <= 0) return;
  trial.sample(train_metrics::kReadSummedRate, bytes / figures.read_summed_s);
  trial.sample(train_metrics::kReadMergedRate, bytes / figures.read_merged_s);
}

std::string skipped_text(const SkippedObject& object) {
  const std::uint64_t more = object.samples - 1;
  if (object.whole) return more == 0 ? object.why : object.why + " (" + format_count(more + 1) + " times)";
  return object.why + " (the sample at byte " + std::to_string(object.offset) +
         (more == 0 ? "" : ", and " + format_count(more) + " more of it") + ")";
}

// A line an object: a damaged shard may have many samples.
void warn_of_skipped(const LoaderLosses& losses) {
  std::uint64_t more = losses.skipped;
  for (const SkippedObject& object : losses.named) {
    warn("skipped: " + skipped_text(object));
    more -= std::min(more, object.samples);
  }
  if (more > 0) warn("skipped: " + format_count(more) + " more");
}

void judge(const TrainOutcome& outcome, const TrainSetup& setup, Trial& trial) {
  if (outcome.failure) trial.fail(*outcome.failure);
  const LoaderLosses& losses = outcome.losses;
  if (losses.skipped > 0) {
    warn_of_skipped(losses);
    trial.verdict(Verdict::degraded, count_of(losses.skipped, setup.files ? "file" : "sample") +
                                         (losses.skipped == 1 ? " was" : " were") + " skipped, the first: " +
                                         (losses.named.empty() ? "" : losses.named.front().why));
  }
  const double overshoot = outcome.figures.step_overshoot.value_or(0);
  if (overshoot <= setup.overshoot_tolerance()) return;
  const std::string reason = "the median step ended " + format_percent(overshoot) +
                             " late: this machine was too busy to emulate the accelerator" +
                             (setup.threads > 1 ? " (fewer --threads leave it a processor)" : "");
  if (!setup.find_accelerators) warn(reason);
  trial.verdict(Verdict::client_bound, reason);
}

std::string_view on_full_name(OnFull on_full) {
  switch (on_full) {
    case OnFull::block:
      return "block";
    case OnFull::skip:
      return "skip";
    case OnFull::writethrough:
      return "writethrough";
  }
  return "";
}

}  // namespace

void describe_saving(const TrainSetup& setup, Trial& trial) {
  if (!setup.saving) return;
  const StepSaving& saving = *setup.saving;
  const CheckpointPolicy& policy = saving.policy;
  trial.parameter("checkpoint_every", saving.every);
  trial.parameter("payload", saving.payload.name);
  trial.parameter("payload_bytes", saving.payload.bytes);
  trial.parameter("run", policy.run);
  trial.parameter("keep", policy.keep);
  trial.parameter("keep_fast", policy.keep_fast);
  trial.parameter("on_full", on_full_name(policy.on_full));
  trial.parameter("on_full_timeout_s", std::chrono::duration<double>(policy.block_for).count());
  trial.parameter("oversize", policy.oversize == Oversize::fail ? "fail" : "writethrough");
  trial.parameter("grace_s", std::chrono::duration<double>(saving.grace).count());
  trial.parameter("mtbf_s", std::chrono::duration<double>(saving.mtbf).count());
  trial.parameter("resume", saving.resume);
  if (!setup.resumed) return;
  trial.parameter("restart", setup.resumed->restart);
  trial.parameter("resumed_step", setup.resumed->manifest.id.step);
  trial.parameter("resumed_from", setup.resumed->tier);
  trial.sample(train_metrics::kRestartChoose, setup.resumed->choose_s);
  trial.sample(train_metrics::kRestart, setup.resumed->restore_s);
  trial.sample(train_metrics::kRestartBytes, static_cast<double>(setup.resumed->manifest.bytes()));
}

void record_outcome(const TrainOutcome& outcome, const TrainSetup& setup, Trial& trial) {
  const TrainingFigures& figures = outcome.figures;
  trial.sample(train_metrics::kSteps, static_cast<double>(outcome.steps));
  trial.sample(train_metrics::kSkippedSamples, static_cast<double>(outcome.losses.skipped));
  trial.sample(train_metrics::kDroppedTail, static_cast<double>(outcome.losses.dropped_tail));
  trial.sample(train_metrics::kPayload, figures.payload_bytes);
  trial.sample(train_metrics::kAccelerators, static_cast<double>(setup.accelerators * outcome.ranks.size()));
  if (figures.wall_s > 0) record_times(outcome, trial);
  if (figures.utilization) trial.sample(train_metrics::kUtilization, *figures.utilization);
  if (figures.utilization_dlio) trial.sample(train_metrics::kUtilizationDlio, *figures.utilization_dlio);
  if (figures.step_overshoot) trial.sample(train_metrics::kOvershoot, *figures.step_overshoot);
  if (setup.files) {
    record_files(outcome, trial);
    record_studied(outcome, setup.files->plan, trial);
  }
  if (setup.checkpoints) record_checkpoints(outcome.checkpoints, trial);
  if (outcome.ranks.size() > 1) record_ranks(outcome, trial);
  if (outcome.timeline) record_timeline(*outcome.timeline, setup, trial);
  judge(outcome, setup, trial);
}

Result<void> record_input_alone(Communicator& ranks, const std::vector<TrainingRun>& parts,
                                const TrainOutcome& outcome, Trial& trial) {
  double sum_s = 0;
  for (const TrainingRun& part : parts) {
    const Result<void> whole = agree(ranks, part.failure ? Result<void>(*part.failure) : success());
    if (!whole.ok()) {
      Error error = whole.error();
      error.what = "after the training, while the input alone was measured: " + error.what;
      trial.fail(error);
      return success();
    }
    double part_s = input_alone_s(part, outcome.steps);
    PENSTOCK_TRY(ranks.all_reduce(std::span(&part_s, 1), Reduction::sum));
    part_s /= ranks.size();
    trial.sample(train_metrics::kInputAlone, part_s);
    sum_s += part_s;
  }
  trial.sample(train_metrics::kInputOverlap,
               input_overlap(outcome.figures.input_wait_s, sum_s / static_cast<double>(parts.size())));
  return success();
}

std::optional<double> device_bytes_fraction(const std::vector<EpochBytes>& epochs, const CacheState& cache) {
  constexpr double kMostlyCached = 0.5;
  EpochBytes all;
  for (const EpochBytes& epoch : epochs) {
    all.consumed += epoch.consumed;
    all.fetched += epoch.fetched;
  }
  const bool cached = cache.resident_fraction_before.value_or(0) >= kMostlyCached;
  if (all.consumed == 0 || (all.fetched == 0 && !cached)) return std::nullopt;
  return static_cast<double>(all.fetched) / static_cast<double>(all.consumed);
}

void record_epochs(const std::vector<EpochBytes>& epochs, Trial& trial) {
  for (const EpochBytes& epoch : epochs)
    if (epoch.consumed > 0)
      trial.sample(train_metrics::kEpochDeviceBytes,
                   static_cast<double>(epoch.fetched) / static_cast<double>(epoch.consumed));
}

}  // namespace penstock
