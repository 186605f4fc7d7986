#include "miniapps/train/train_outcome.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "results/record/gather_json.hpp"

namespace penstock {
namespace {

// Divides the accelerator's wait for input in the proportions of the input's parts, and adds the costs of
// ranks.
std::vector<LostTime> lost_by(const TrainingFigures& figures, const std::vector<LostTime>& by_input) {
  double sum = 0;
  for (const LostTime& part : by_input) sum += part.seconds;
  std::vector<LostTime> lost;
  for (const LostTime& part : by_input) {
    const double share = sum > 0 ? part.seconds / sum : part.to == "queue" ? 1 : 0;
    lost.push_back({part.to, share * figures.input_wait_s});
  }
  lost.push_back({"straggler", figures.straggler_s});
  lost.push_back({"barrier", figures.barrier_s});
  return lost;
}

std::vector<double> by_second(const TrainingRun& run) {
  std::vector<double> bytes;
  for (const StepTimes& step : run.steps) {
    const auto second = static_cast<std::size_t>(step.end_ns / 1'000'000'000);
    if (bytes.size() <= second) bytes.resize(second + 1, 0.0);
    bytes[second] += static_cast<double>(step.payload_bytes);
  }
  return bytes;
}

// The parts of an outcome that are not summed.
Json packed(const TrainOutcome& outcome) {
  Json named = Json::array();
  for (const SkippedObject& object : outcome.losses.named)
    named.push_back(Json::array({object.name, object.whole, object.samples, object.offset, object.why}));
  return {{"bytes", outcome.ranks.front().bytes},
          {"wall_s", outcome.ranks.front().wall_s},
          {"utilization", number_json(outcome.figures.utilization)},
          {"last", outcome.last_ones.front()},
          {"skipped", outcome.losses.skipped},
          {"dropped_tail", outcome.losses.dropped_tail},
          {"named", std::move(named)},
          {"failure", outcome.failure ? error_json(*outcome.failure) : Json()}};
}

// Adds the packed values of one more rank.
void unpack(const Json& json, TrainOutcome& outcome) {
  outcome.ranks.push_back({json["bytes"].get<std::uint64_t>(), json["wall_s"].get<double>()});
  if (const auto utilization = number_from_json(json["utilization"]))
    outcome.utilizations.push_back(*utilization);
  outcome.last_ones.push_back(json["last"].get<std::uint64_t>());
  LoaderLosses losses{json["skipped"].get<std::uint64_t>(), json["dropped_tail"].get<std::uint64_t>(), {}};
  for (const Json& object : json["named"])
    losses.named.push_back({object[0].get<std::string>(), object[1].get<bool>(),
                            object[2].get<std::uint64_t>(), object[3].get<std::uint64_t>(),
                            object[4].get<std::string>()});
  outcome.losses.add(losses);
  if (!outcome.failure && !json["failure"].is_null()) outcome.failure = error_from_json(json["failure"]);
}

// Replaces each value by its sum over all ranks times `share`.
Result<void> add_up(Communicator& ranks, std::span<double* const> values, double share) {
  std::vector<double> sums;
  for (const double* const value : values) sums.push_back(*value);
  PENSTOCK_TRY(ranks.all_reduce(std::span(sums), Reduction::sum));
  for (std::size_t i = 0; i < values.size(); ++i) *values[i] = sums[i] * share;
  return success();
}

// The mean over the ranks that have a value.
Result<void> average(Communicator& ranks, std::optional<double>& figure) {
  std::array sum{figure.value_or(0), figure ? 1.0 : 0.0};
  PENSTOCK_TRY(ranks.all_reduce(std::span<double>(sum), Reduction::sum));
  figure = sum[1] > 0 ? std::optional(sum[0] / sum[1]) : std::nullopt;
  return success();
}

Result<void> join_figures(Communicator& ranks, TrainingFigures& figures) {
  std::array most{figures.wall_s, figures.first_batch_s};
  PENSTOCK_TRY(ranks.all_reduce(std::span<double>(most), Reduction::max));
  figures.wall_s = most[0];
  figures.first_batch_s = most[1];
  double* const sums[] = {&figures.samples, &figures.payload_bytes};
  PENSTOCK_TRY(add_up(ranks, sums, 1));
  double* const means[] = {&figures.input_wait_s, &figures.straggler_s, &figures.barrier_s, &figures.aside_s};
  PENSTOCK_TRY(add_up(ranks, means, 1.0 / ranks.size()));
  PENSTOCK_TRY(average(ranks, figures.step_overshoot));
  PENSTOCK_TRY(average(ranks, figures.utilization));
  return average(ranks, figures.utilization_dlio);
}

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

std::string skipped_text(const SkippedObject& object) {
  const std::uint64_t more = object.samples - 1;
  if (object.whole) return more == 0 ? object.why : object.why + " (" + format_count(more + 1) + " times)";
  return object.why + " (the sample at byte " + std::to_string(object.offset) +
         (more == 0 ? "" : ", and " + format_count(more) + " more of it") + ")";
}

// Prints one line for each object: a damaged shard may have many bad samples.
void warn_of_skipped(const LoaderLosses& losses) {
  std::uint64_t more = losses.skipped;
  for (const SkippedObject& object : losses.named) {
    warn("skipped: " + skipped_text(object));
    more -= std::min(more, object.samples);
  }
  if (more > 0) warn("skipped: " + format_count(more) + " more");
}

void judge(const TrainOutcome& outcome, const TrainPlan& plan, Trial& trial) {
  if (outcome.failure) trial.fail(*outcome.failure);
  const LoaderLosses& losses = outcome.losses;
  if (losses.skipped > 0) {
    warn_of_skipped(losses);
    trial.verdict(Verdict::degraded, count_of(losses.skipped, plan.files() != nullptr ? "file" : "sample") +
                                         (losses.skipped == 1 ? " was" : " were") + " skipped, the first: " +
                                         (losses.named.empty() ? "" : losses.named.front().why));
  }
  const double overshoot = outcome.figures.step_overshoot.value_or(0);
  if (overshoot <= plan.overshoot_tolerance()) return;
  const std::string reason = "the median step ended " + format_percent(overshoot) +
                             " late: this machine was too busy to emulate the accelerator" +
                             (plan.threads > 1 ? " (fewer --threads leave it a processor)" : "");
  if (!plan.find_accelerators) warn(reason);
  trial.verdict(Verdict::client_bound, reason);
}

}  // namespace

TrainOutcome train_outcome(const TrainingRun& run, std::chrono::nanoseconds nominal_step,
                           const BatchSource& input) {
  TrainOutcome outcome;
  outcome.figures = figures(run, nominal_step);
  const TrainingFigures& got = outcome.figures;
  outcome.steps = run.steps.size();
  outcome.stages = input.times();
  const double together_s = got.straggler_s + got.barrier_s;
  outcome.stages.push_back({"accelerator",
                            std::max(0.0, got.wall_s - got.input_wait_s - together_s - got.aside_s),
                            got.input_wait_s, together_s});
  outcome.lost = lost_by(got, input.lost());
  outcome.losses = input.losses();
  outcome.training_files = input.files_used();
  outcome.bytes_by_second = by_second(run);
  outcome.failure = run.failure;
  outcome.ranks = {{static_cast<std::uint64_t>(got.payload_bytes), got.wall_s}};
  if (got.utilization) outcome.utilizations = {*got.utilization};
  outcome.last_ones = {run.last};
  return outcome;
}

Result<TrainOutcome> joined(Communicator& ranks, const TrainOutcome& mine) {
  if (ranks.size() == 1) return mine;
  PENSTOCK_ASSIGN(const auto gathered,
                  gather_json(ranks, packed(mine), [](const std::vector<Json>& each) { return Json(each); }));
  TrainOutcome all;
  for (const Json& rank : gathered.json) unpack(rank, all);
  all.figures = mine.figures;
  PENSTOCK_TRY(join_figures(ranks, all.figures));
  all.steps = mine.steps;
  PENSTOCK_TRY(ranks.all_reduce(std::span(&all.steps, 1), Reduction::min));
  all.training_files = mine.training_files;
  PENSTOCK_TRY(ranks.all_reduce(std::span(&all.training_files, 1), Reduction::sum));
  all.stages = mine.stages;
  std::vector<double*> times;
  for (StageTally& stage : all.stages)
    times.insert(times.end(), {&stage.busy_s, &stage.starved_s, &stage.blocked_s});
  PENSTOCK_TRY(add_up(ranks, times, 1));
  all.lost = mine.lost;
  times.clear();
  for (LostTime& part : all.lost) times.push_back(&part.seconds);
  PENSTOCK_TRY(add_up(ranks, times, 1.0 / ranks.size()));
  all.bytes_by_second = mine.bytes_by_second;
  std::uint64_t seconds = mine.bytes_by_second.size();
  PENSTOCK_TRY(ranks.all_reduce(std::span(&seconds, 1), Reduction::max));
  all.bytes_by_second.resize(static_cast<std::size_t>(seconds));
  if (seconds > 0) PENSTOCK_TRY(ranks.all_reduce(std::span(all.bytes_by_second), Reduction::sum));
  return all;
}

void record_outcome(const TrainOutcome& outcome, const TrainPlan& plan, Trial& trial) {
  const TrainingFigures& figures = outcome.figures;
  trial.sample(train_metrics::kSteps, static_cast<double>(outcome.steps));
  trial.sample(train_metrics::kSkippedSamples, static_cast<double>(outcome.losses.skipped));
  trial.sample(train_metrics::kDroppedTail, static_cast<double>(outcome.losses.dropped_tail));
  trial.sample(train_metrics::kPayload, figures.payload_bytes);
  trial.sample(train_metrics::kAccelerators, static_cast<double>(plan.accelerators * outcome.ranks.size()));
  if (figures.wall_s > 0) record_times(outcome, trial);
  if (figures.utilization) trial.sample(train_metrics::kUtilization, *figures.utilization);
  if (figures.utilization_dlio) trial.sample(train_metrics::kUtilizationDlio, *figures.utilization_dlio);
  if (figures.step_overshoot) trial.sample(train_metrics::kOvershoot, *figures.step_overshoot);
  if (outcome.ranks.size() > 1) record_ranks(outcome, trial);
  judge(outcome, plan, trial);
}

Result<void> record_input_alone(Communicator& ranks, const std::vector<TrainingRun>& parts,
                                const TrainOutcome& outcome, Trial& trial) {
  double sum_s = 0;
  for (const TrainingRun& part : parts) {
    const Result<void> whole = all_ok(ranks, part.failure ? Result<void>(*part.failure) : success());
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

}  // namespace penstock
