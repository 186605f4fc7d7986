#include "miniapps/train/train_outcome.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/train_team.hpp"

namespace penstock {
namespace {

// Returns the time that the accelerator lost, by cause. Its wait for input is divided among the causes in
// proportion to `by_input`, the lost times that the input reports. Its waits for other ranks are separate
// causes.
std::vector<LostTime> lost_times(const TrainingFigures& figures, const std::vector<LostTime>& by_input) {
  double sum = 0;
  for (const LostTime& part : by_input) sum += part.seconds;
  std::vector<LostTime> lost;
  for (const LostTime& part : by_input) {
    const double share = sum > 0 ? part.seconds / sum : part.cause == "queue" ? 1 : 0;
    lost.push_back({part.cause, share * figures.input_wait_s});
  }
  lost.push_back({"straggler", figures.straggler_s});
  lost.push_back({"barrier", figures.barrier_s});
  return lost;
}

std::vector<double> bytes_in_seconds(const TrainingRun& run) {
  std::vector<double> bytes;
  for (const StepTimes& step : run.steps) {
    const auto second = size_t(step.end_ns / 1'000'000'000);
    if (bytes.size() <= second) bytes.resize(second + 1, 0.0);
    bytes[second] += double(step.payload_bytes);
  }
  return bytes;
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
    if (outcome.ranks.size() > 1 || part.cause != "straggler")
      trial.sample(train_metrics::kLost, part.cause, part.seconds);
}

void add_verdict(const TrainOutcome& outcome, const TrainPlan& plan, Trial& trial) {
  if (outcome.failure) trial.fail(*outcome.failure);
  const LoaderLosses& losses = outcome.losses;
  if (losses.pictures.samples > 0) plan.warn("pictures: " + losses.pictures.text());
  if (losses.skipped > 0) {
    for (const std::string& line : losses.warnings()) plan.warn(line);
    trial.verdict(Verdict::degraded, count_of(losses.skipped, plan.files() != nullptr ? "file" : "sample") +
                                         (losses.skipped == 1 ? " was" : " were") + " skipped, the first: " +
                                         (losses.named.empty() ? "" : losses.named.front().why));
  }
  const double overshoot = outcome.figures.step_overshoot.value_or(0);
  constexpr double kEarlyTolerance = 0.1;
  const bool is_early = plan.burns_processors() && overshoot < -kEarlyTolerance;
  if (!is_early && overshoot <= plan.overshoot_tolerance()) return;
  const std::string reason =
      is_early ? "the median step ended " + format_percent(-overshoot) +
                     " early: burn=cpu was calibrated while the CPUs were busy, so it does too little work"
               : "the median step ended " + format_percent(overshoot) +
                     " late: this machine was too busy to emulate the accelerator" +
                     (plan.threads > 1 ? " (lower --threads so that one CPU is free for it)" : "");
  if (!plan.searches_accelerators) plan.warn(reason);
  trial.verdict(Verdict::client_bound, reason);
}

}  // namespace

TrainOutcome train_outcome(const TrainingRun& run, std::chrono::nanoseconds nominal_step,
                           const BatchSource& input, const ExcludedSteps& excluded) {
  TrainOutcome outcome;
  outcome.figures = figures(run, nominal_step, excluded);
  const TrainingFigures& totals = outcome.figures;
  outcome.steps = run.steps.size();
  outcome.stages = input.times();
  const double ranks_s = totals.straggler_s + totals.barrier_s;
  outcome.stages.push_back({"accelerator",
                            std::max(0.0, totals.wall_s - totals.input_wait_s - ranks_s - totals.observer_s),
                            totals.input_wait_s, ranks_s});
  outcome.lost = lost_times(totals, input.lost_times());
  outcome.losses = input.losses();
  outcome.training_files = input.files_used();
  outcome.bytes_by_second = bytes_in_seconds(run);
  outcome.failure = run.failure;
  outcome.ranks = {totals};
  return outcome;
}

void record_outcome(const TrainOutcome& outcome, const TrainPlan& plan, Trial& trial) {
  const TrainingFigures& figures = outcome.figures;
  trial.sample(train_metrics::kSteps, double(outcome.steps));
  trial.sample(train_metrics::kSkippedSamples, double(outcome.losses.skipped));
  for (size_t i = 0; i < kPictureWarnings; ++i)
    if (const uint64_t count = outcome.losses.pictures.by_warning[i]; count > 0)
      trial.sample(train_metrics::kPictureWarnings, picture_warning_name(i), double(count));
  trial.sample(train_metrics::kDroppedTail, double(outcome.losses.dropped_tail));
  trial.sample(train_metrics::kPayload, figures.payload_bytes);
  trial.sample(train_metrics::kAccelerators, double(plan.accelerators * outcome.ranks.size()));
  if (figures.wall_s > 0) record_times(outcome, trial);
  if (figures.utilization) trial.sample(train_metrics::kUtilization, *figures.utilization);
  if (figures.utilization_dlio) trial.sample(train_metrics::kUtilizationDlio, *figures.utilization_dlio);
  if (figures.step_overshoot) trial.sample(train_metrics::kOvershoot, *figures.step_overshoot);
  record_ranks(outcome, trial);
  add_verdict(outcome, plan, trial);
}

}  // namespace penstock
