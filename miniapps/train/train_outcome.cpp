#include "miniapps/train/train_outcome.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/train/published_bandwidth.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "results/record/gather_json.hpp"

namespace penstock {
namespace {

// The input's parts of what it was waited for, as parts of what the accelerator waited; and what ranks cost.
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

Json packed(const TrainingFigures& figures) {
  return Json::array({figures.wall_s, figures.first_batch_s, figures.input_wait_s, figures.straggler_s,
                      figures.barrier_s, figures.aside_s, figures.samples, figures.payload_bytes,
                      packed_number(figures.step_overshoot), packed_number(figures.utilization),
                      packed_number(figures.utilization_dlio)});
}
TrainingFigures figures_of(const Json& json) {
  return {.wall_s = json[0].get<double>(),
          .first_batch_s = json[1].get<double>(),
          .input_wait_s = json[2].get<double>(),
          .straggler_s = json[3].get<double>(),
          .barrier_s = json[4].get<double>(),
          .aside_s = json[5].get<double>(),
          .samples = json[6].get<double>(),
          .payload_bytes = json[7].get<double>(),
          .step_overshoot = number_of(json[8]),
          .utilization = number_of(json[9]),
          .utilization_dlio = number_of(json[10])};
}

Json packed_files(const TrainOutcome& outcome) {
  const ValidationFigures& validation = outcome.validation;
  return Json::array({outcome.training_files, validation.passes, validation.samples, validation.bytes,
                      validation.files, validation.read_s});
}

void unpack_files(const Json& json, TrainOutcome& outcome) {
  ValidationFigures& validation = outcome.validation;
  std::size_t i = 0;
  for (std::uint64_t* figure : {&outcome.training_files, &validation.passes, &validation.samples,
                                &validation.bytes, &validation.files})
    json[i++].get_to(*figure);
  json[i].get_to(validation.read_s);
}

Json packed(const std::optional<TimelineFigures>& figures) {
  if (!figures) return {};
  return Json::array({figures->spans, figures->dropped, figures->read_bytes, figures->read_summed_s,
                      figures->read_merged_s, figures->train_merged_s, figures->read_train_overlap_s,
                      figures->read_share});
}
std::optional<TimelineFigures> timeline_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return TimelineFigures{.spans = json[0].get<std::uint64_t>(),
                         .dropped = json[1].get<std::uint64_t>(),
                         .read_bytes = json[2].get<std::uint64_t>(),
                         .read_summed_s = json[3].get<double>(),
                         .read_merged_s = json[4].get<double>(),
                         .train_merged_s = json[5].get<double>(),
                         .read_train_overlap_s = json[6].get<double>(),
                         .read_share = json[7].get<double>()};
}

Json packed(const TrainOutcome& outcome) {
  Json stages = Json::array();
  for (const StageTally& stage : outcome.stages)
    stages.push_back(Json::array({stage.stage, stage.busy_s, stage.starved_s, stage.blocked_s}));
  Json lost = Json::array();
  for (const LostTime& part : outcome.lost) lost.push_back(Json::array({part.to, part.seconds}));
  Json epochs = Json::array();
  for (const EpochBytes& epoch : outcome.epochs)
    epochs.push_back(Json::array({epoch.consumed, epoch.fetched}));
  Json named = Json::array();
  for (const SkippedObject& object : outcome.losses.named)
    named.push_back(Json::array({object.name, object.whole, object.samples, object.offset, object.why}));
  Json ranks = Json::array();
  for (const RankFigures& rank : outcome.ranks) ranks.push_back(Json::array({rank.bytes, rank.wall_s}));
  return {{"figures", packed(outcome.figures)},
          {"steps", outcome.steps},
          {"stages", std::move(stages)},
          {"lost", std::move(lost)},
          {"skipped", outcome.losses.skipped},
          {"dropped_tail", outcome.losses.dropped_tail},
          {"named", std::move(named)},
          {"bytes_by_second", outcome.bytes_by_second},
          {"epochs", std::move(epochs)},
          {"failure", outcome.failure ? packed(*outcome.failure) : Json()},
          {"ranks", std::move(ranks)},
          {"utilizations", outcome.utilizations},
          {"last_ones", outcome.last_ones},
          {"files", packed_files(outcome)},
          {"checkpoint_bytes", outcome.checkpoints.bytes},
          {"checkpoint_s", outcome.checkpoints.seconds},
          {"timeline", packed(outcome.timeline)}};
}

TrainOutcome outcome_of(const Json& json) {
  TrainOutcome outcome;
  outcome.figures = figures_of(json["figures"]);
  json["steps"].get_to(outcome.steps);
  for (const Json& stage : json["stages"])
    outcome.stages.push_back({stage[0].get<std::string>(), stage[1].get<double>(), stage[2].get<double>(),
                              stage[3].get<double>()});
  for (const Json& part : json["lost"])
    outcome.lost.push_back({part[0].get<std::string>(), part[1].get<double>()});
  json["skipped"].get_to(outcome.losses.skipped);
  json["dropped_tail"].get_to(outcome.losses.dropped_tail);
  for (const Json& object : json["named"])
    outcome.losses.named.push_back({object[0].get<std::string>(), object[1].get<bool>(),
                                    object[2].get<std::uint64_t>(), object[3].get<std::uint64_t>(),
                                    object[4].get<std::string>()});
  json["bytes_by_second"].get_to(outcome.bytes_by_second);
  for (const Json& epoch : json["epochs"])
    outcome.epochs.push_back({epoch[0].get<std::uint64_t>(), epoch[1].get<std::uint64_t>()});
  if (!json["failure"].is_null()) outcome.failure = error_of(json["failure"]);
  for (const Json& rank : json["ranks"])
    outcome.ranks.push_back({rank[0].get<std::uint64_t>(), rank[1].get<double>()});
  json["utilizations"].get_to(outcome.utilizations);
  json["last_ones"].get_to(outcome.last_ones);
  unpack_files(json["files"], outcome);
  json["checkpoint_bytes"].get_to(outcome.checkpoints.bytes);
  json["checkpoint_s"].get_to(outcome.checkpoints.seconds);
  outcome.timeline = timeline_of(json["timeline"]);
  return outcome;
}

// The mean over those who have one.
std::optional<double> mean(const std::vector<TrainOutcome>& each,
                           std::optional<double> TrainingFigures::*figure) {
  double sum = 0;
  double count = 0;
  for (const TrainOutcome& one : each) {
    if (!(one.figures.*figure)) continue;
    sum += *(one.figures.*figure);
    count += 1;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

TrainingFigures joined_figures(const std::vector<TrainOutcome>& each) {
  const auto ranks = static_cast<double>(each.size());
  TrainingFigures all;
  for (const TrainOutcome& one : each) {
    const TrainingFigures& figures = one.figures;
    all.wall_s = std::max(all.wall_s, figures.wall_s);
    all.first_batch_s = std::max(all.first_batch_s, figures.first_batch_s);
    all.input_wait_s += figures.input_wait_s / ranks;
    all.straggler_s += figures.straggler_s / ranks;
    all.barrier_s += figures.barrier_s / ranks;
    all.aside_s += figures.aside_s / ranks;
    all.samples += figures.samples;
    all.payload_bytes += figures.payload_bytes;
  }
  all.step_overshoot = mean(each, &TrainingFigures::step_overshoot);
  all.utilization = mean(each, &TrainingFigures::utilization);
  all.utilization_dlio = mean(each, &TrainingFigures::utilization_dlio);
  return all;
}

void add(TrainOutcome& all, const TrainOutcome& one, double ranks) {
  all.steps = std::min(all.steps, one.steps);
  for (std::size_t i = 0; i < all.stages.size() && i < one.stages.size(); ++i) {
    all.stages[i].busy_s += one.stages[i].busy_s;
    all.stages[i].starved_s += one.stages[i].starved_s;
    all.stages[i].blocked_s += one.stages[i].blocked_s;
  }
  for (std::size_t i = 0; i < all.lost.size() && i < one.lost.size(); ++i)
    all.lost[i].seconds += one.lost[i].seconds / ranks;
  all.losses.add(one.losses);
  all.bytes_by_second.resize(std::max(all.bytes_by_second.size(), one.bytes_by_second.size()));
  for (std::size_t i = 0; i < one.bytes_by_second.size(); ++i)
    all.bytes_by_second[i] += one.bytes_by_second[i];
  all.epochs.resize(std::min(all.epochs.size(), one.epochs.size()));
  for (std::size_t i = 0; i < all.epochs.size(); ++i) {
    all.epochs[i].consumed += one.epochs[i].consumed;
    all.epochs[i].fetched += one.epochs[i].fetched;
  }
  if (!all.failure) all.failure = one.failure;
  all.training_files += one.training_files;
  all.checkpoints.bytes += one.checkpoints.bytes;
  all.checkpoints.seconds.insert(all.checkpoints.seconds.end(), one.checkpoints.seconds.begin(),
                                 one.checkpoints.seconds.end());
  all.validation.passes = std::max(all.validation.passes, one.validation.passes);
  all.validation.samples += one.validation.samples;
  all.validation.bytes += one.validation.bytes;
  all.validation.files += one.validation.files;
  all.validation.read_s += one.validation.read_s;
  all.ranks.insert(all.ranks.end(), one.ranks.begin(), one.ranks.end());
  all.utilizations.insert(all.utilizations.end(), one.utilizations.begin(), one.utilizations.end());
  all.last_ones.insert(all.last_ones.end(), one.last_ones.begin(), one.last_ones.end());
}

// All ranks have one, or none has.
std::optional<TimelineFigures> joined_timeline(const std::vector<TrainOutcome>& each) {
  if (!each.front().timeline) return std::nullopt;
  const auto ranks = static_cast<double>(each.size());
  TimelineFigures all;
  for (const TrainOutcome& one : each) {
    const TimelineFigures figures = one.timeline.value_or(TimelineFigures{});
    all.spans += figures.spans;
    all.dropped += figures.dropped;
    all.read_bytes += figures.read_bytes;
    all.read_summed_s += figures.read_summed_s / ranks;
    all.read_merged_s += figures.read_merged_s / ranks;
    all.train_merged_s += figures.train_merged_s / ranks;
    all.read_train_overlap_s += figures.read_train_overlap_s / ranks;
    all.read_share += figures.read_share / ranks;
  }
  return all;
}

TrainOutcome side_by_side(const std::vector<TrainOutcome>& each) {
  TrainOutcome all = each.front();
  for (LostTime& part : all.lost) part.seconds /= static_cast<double>(each.size());
  for (std::size_t i = 1; i < each.size(); ++i) add(all, each[i], static_cast<double>(each.size()));
  all.figures = joined_figures(each);
  all.timeline = joined_timeline(each);
  return all;
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

// Over the seconds that the workers of a rank read, the mean of ranks.
void record_studied(const TrainOutcome& outcome, const FileInput& input, Trial& trial) {
  if (input.bytes == nullptr || outcome.stages.empty()) return;
  const double read_s =
      (outcome.stages.front().busy_s + outcome.validation.read_s) / static_cast<double>(outcome.ranks.size());
  trial.sample(train_metrics::kFileRead, read_s);
  const StudiedBytes bytes = input.bytes(input, outcome.training_files, outcome.validation.files);
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
                           const BatchSource& input, std::vector<EpochBytes> epochs) {
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
  outcome.epochs = std::move(epochs);
  outcome.failure = run.failure;
  outcome.ranks = {{static_cast<std::uint64_t>(got.payload_bytes), got.wall_s}};
  if (got.utilization) outcome.utilizations = {*got.utilization};
  outcome.last_ones = {run.last};
  return outcome;
}

Result<TrainOutcome> joined(Communicator& ranks, const TrainOutcome& mine) {
  if (ranks.size() == 1) return mine;
  PENSTOCK_ASSIGN(const GatheredJson said,
                  gather_json(ranks, packed(mine), [](const std::vector<Json>& each) {
                    std::vector<TrainOutcome> outcomes;
                    outcomes.reserve(each.size());
                    for (const Json& one : each) outcomes.push_back(outcome_of(one));
                    return packed(side_by_side(outcomes));
                  }));
  return outcome_of(said.json);
}

void add_validation(const Validating& validating, TrainOutcome& outcome) {
  outcome.validation = validating.figures();
  LoaderLosses losses = validating.losses();
  losses.dropped_tail = 0;
  outcome.losses.add(losses);
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
  if (const FileInput* const input = plan.files()) {
    record_files(outcome, trial);
    record_studied(outcome, *input, trial);
  }
  if (plan.checkpoints) record_checkpoints(outcome.checkpoints, trial);
  if (outcome.ranks.size() > 1) record_ranks(outcome, trial);
  if (outcome.timeline) record_timeline(*outcome.timeline, plan.timeline_memory, trial);
  judge(outcome, plan, trial);
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
