#include "miniapps/train/train_team.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/record/gather_json.hpp"

namespace penstock {
namespace {

// Joins the options that describe the work into one text. All ranks must have the same text.
std::string work_text(const TrainPlan& plan, const Options& options) {
  std::string text = std::string(plan.app->name) + "|" + plan.accelerator + "|" + plan.workload;
  for (const std::string& value : options.texts("set")) text += "|" + value;
  for (const char* name : {"decode", "resize", "on-error", "payload", "run"})
    text += "|" + options.text(name);
  if (plan.files() != nullptr && plan.files()->validation)
    text += "|" + plan.files()->validation->set.files.manifest.checksum();
  return text;
}

// Returns those values of an outcome that joined() needs from each single rank, as JSON.
Json packed(const TrainOutcome& outcome) {
  Json named = Json::array();
  for (const SkippedObject& object : outcome.losses.named)
    named.push_back(
        Json::array({object.name, object.is_one_sample, object.samples, object.offset, object.why}));
  return {{"bytes", outcome.figures.payload_bytes},
          {"wall_s", outcome.figures.wall_s},
          {"utilization", number_json(outcome.figures.utilization)},
          {"last", outcome.figures.steps_arrived_last},
          {"skipped", outcome.losses.skipped},
          {"dropped_tail", outcome.losses.dropped_tail},
          {"named", std::move(named)},
          {"pictures", outcome.losses.pictures.json()},
          {"failure", outcome.failure ? error_json(*outcome.failure) : Json()}};
}

// Adds the values of one rank, as packed() returned them on that rank, to the joined outcome.
void unpack(const Json& json, TrainOutcome& outcome) {
  outcome.ranks.push_back({.wall_s = json["wall_s"].get<double>(),
                           .payload_bytes = json["bytes"].get<double>(),
                           .steps_arrived_last = json["last"].get<uint64_t>(),
                           .step_overshoot = std::nullopt,
                           .utilization = number_from_json(json["utilization"]),
                           .utilization_dlio = std::nullopt});
  LoaderLosses losses{json["skipped"].get<uint64_t>(),
                      json["dropped_tail"].get<uint64_t>(),
                      {},
                      PictureWarningCounts::from_json(json["pictures"])};
  for (const Json& object : json["named"])
    losses.named.push_back({object[0].get<std::string>(), object[1].get<bool>(), object[2].get<uint64_t>(),
                            object[3].get<uint64_t>(), object[4].get<std::string>()});
  outcome.losses.add(losses);
  if (!outcome.failure && !json["failure"].is_null()) outcome.failure = error_from_json(json["failure"]);
}

// Replaces each value by `share` * (the sum of this value over all ranks). If `share` is 1 / ranks, that is
// the mean.
Result<void> sum_over_ranks(Communicator& ranks, std::span<double* const> values, double share) {
  std::vector<double> sums;
  for (const double* const value : values) sums.push_back(*value);
  PENSTOCK_TRY(ranks.all_reduce(std::span(sums), Reduction::sum));
  for (size_t i = 0; i < values.size(); ++i) *values[i] = sums[i] * share;
  return success();
}

// Replaces the figure by its mean over the ranks that have a value.
Result<void> average_over_ranks(Communicator& ranks, std::optional<double>& figure) {
  std::array sum{figure.value_or(0), figure ? 1.0 : 0.0};
  PENSTOCK_TRY(ranks.all_reduce(std::span<double>(sum), Reduction::sum));
  figure = sum[1] > 0 ? std::optional(sum[0] / sum[1]) : std::nullopt;
  return success();
}

Result<void> join_figures(Communicator& ranks, TrainingFigures& figures) {
  std::array maxima{figures.wall_s, figures.first_batch_s};
  PENSTOCK_TRY(ranks.all_reduce(std::span<double>(maxima), Reduction::max));
  figures.wall_s = maxima[0];
  figures.first_batch_s = maxima[1];
  double* const sums[] = {&figures.samples, &figures.payload_bytes};
  PENSTOCK_TRY(sum_over_ranks(ranks, sums, 1));
  double* const means[] = {&figures.input_wait_s, &figures.straggler_s, &figures.barrier_s,
                           &figures.observer_s};
  PENSTOCK_TRY(sum_over_ranks(ranks, means, 1.0 / ranks.size()));
  PENSTOCK_TRY(average_over_ranks(ranks, figures.step_overshoot));
  PENSTOCK_TRY(average_over_ranks(ranks, figures.utilization));
  return average_over_ranks(ranks, figures.utilization_dlio);
}

}  // namespace

Result<void> check_same_work(const TrainPlan& plan, const Options& options) {
  const std::string text = work_text(plan, options);
  const std::vector<uint64_t> numbers{crc32c(std::as_bytes(std::span(text))),
                                      plan.batch,
                                      plan.accelerators,
                                      plan.prefetch,
                                      plan.limits.batches,
                                      plan.limits.epochs,
                                      uint64_t(plan.shuffle.kind),
                                      plan.shuffle.buffer_entries,
                                      plan.seed,
                                      uint64_t(plan.cache),
                                      plan.searches_accelerators ? 1U : 0U,
                                      std::bit_cast<uint64_t>(plan.required_utilization),
                                      plan.sample_log.empty() ? 0U : 1U,
                                      plan.timeline.empty() ? 0U : 1U,
                                      plan.checkpoint_tier ? 1U : 0U,
                                      plan.saving ? plan.saving->every_steps : 0U,
                                      plan.saving ? plan.saving->payload.bytes : 0U,
                                      plan.saving && plan.saving->fast ? 1U : 0U,
                                      plan.saving && plan.saving->resume ? 1U : 0U,
                                      plan.saving ? uint64_t(plan.saving->policy.on_full) : 0U,
                                      plan.other_tiers.size(),
                                      plan.only_other_tiers ? 1U : 0U};
  std::vector<uint64_t> minima = numbers;
  std::vector<uint64_t> maxima = numbers;
  PENSTOCK_TRY(plan.ranks->all_reduce(std::span(minima), Reduction::min));
  PENSTOCK_TRY(plan.ranks->all_reduce(std::span(maxima), Reduction::max));
  if (minima == maxima) return success();
  return make_error(Errc::invalid_argument,
                    "the ranks were started with different flags: pass the same flags to all ranks (only "
                    "paths may differ)");
}

Result<TrainOutcome> joined(Communicator& ranks, const TrainOutcome& mine) {
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
  PENSTOCK_TRY(sum_over_ranks(ranks, times, 1));
  all.lost = mine.lost;
  times.clear();
  for (LostTime& part : all.lost) times.push_back(&part.seconds);
  PENSTOCK_TRY(sum_over_ranks(ranks, times, 1.0 / ranks.size()));
  all.bytes_by_second = mine.bytes_by_second;
  uint64_t seconds = mine.bytes_by_second.size();
  PENSTOCK_TRY(ranks.all_reduce(std::span(&seconds, 1), Reduction::max));
  all.bytes_by_second.resize(size_t(seconds));
  if (seconds > 0) PENSTOCK_TRY(ranks.all_reduce(std::span(all.bytes_by_second), Reduction::sum));
  return all;
}

Result<std::vector<EpochBytes>> joined(Communicator& ranks, std::vector<EpochBytes> mine) {
  uint64_t count = mine.size();
  PENSTOCK_TRY(ranks.all_reduce(std::span(&count, 1), Reduction::min));
  mine.resize(size_t(count));
  std::vector<uint64_t> sums;  // all epochs in one list, to sum them in one collective call
  for (const EpochBytes& epoch : mine) {
    sums.push_back(epoch.consumed);
    sums.push_back(epoch.fetched);
  }
  if (count > 0) PENSTOCK_TRY(ranks.all_reduce(std::span(sums), Reduction::sum));
  for (size_t i = 0; i < mine.size(); ++i) mine[i] = {sums[2 * i], sums[2 * i + 1]};
  return mine;
}

Result<ValidationFigures> joined(Communicator& ranks, ValidationFigures mine) {
  std::array sums{mine.samples, mine.bytes, mine.files};
  PENSTOCK_TRY(ranks.all_reduce(std::span<uint64_t>(sums), Reduction::sum));
  PENSTOCK_TRY(ranks.all_reduce(std::span(&mine.passes, 1), Reduction::max));
  PENSTOCK_TRY(ranks.all_reduce(std::span(&mine.read_s, 1), Reduction::sum));
  return ValidationFigures{mine.passes, sums[0], sums[1], sums[2], mine.read_s};
}

Result<TimelineFigures> joined(Communicator& ranks, const TimelineFigures& mine) {
  std::array counts{mine.spans, mine.dropped, mine.read_bytes};
  PENSTOCK_TRY(ranks.all_reduce(std::span<uint64_t>(counts), Reduction::sum));
  std::array times{mine.read_summed_s, mine.read_merged_s, mine.train_merged_s, mine.read_train_overlap_s,
                   mine.read_share};
  PENSTOCK_TRY(ranks.all_reduce(std::span<double>(times), Reduction::sum));
  for (double& time : times) time /= ranks.size();
  return TimelineFigures{.spans = counts[0],
                         .dropped = counts[1],
                         .read_bytes = counts[2],
                         .read_summed_s = times[0],
                         .read_merged_s = times[1],
                         .train_merged_s = times[2],
                         .read_train_overlap_s = times[3],
                         .read_share = times[4]};
}

void record_ranks(const TrainOutcome& outcome, Trial& trial) {
  if (outcome.ranks.size() == 1) return;
  std::vector<RankFigures> ranks;
  std::optional<double> least_utilization;
  for (const TrainingFigures& rank : outcome.ranks) {
    ranks.push_back({uint64_t(rank.payload_bytes), rank.wall_s});
    if (rank.utilization)
      least_utilization = std::min(least_utilization.value_or(*rank.utilization), *rank.utilization);
  }
  record_ranks(ranks, kRankRatesOfRun, trial);
  if (least_utilization) trial.sample(train_metrics::kLeastUtilization, *least_utilization);
  if (outcome.steps == 0) return;
  const auto slowest = std::max_element(outcome.ranks.begin(), outcome.ranks.end(),
                                        [](const TrainingFigures& a, const TrainingFigures& b) {
                                          return a.steps_arrived_last < b.steps_arrived_last;
                                        });
  trial.sample(train_metrics::kStragglerRank, double(slowest - outcome.ranks.begin()));
  trial.sample(train_metrics::kStragglerSteps, double(slowest->steps_arrived_last));
}

Result<void> record_input_alone(Communicator& ranks, const std::vector<TrainingRun>& parts,
                                const TrainOutcome& outcome, Trial& trial) {
  double sum_s = 0;
  for (const TrainingRun& part : parts) {
    const Result<void> all_ran = all_ok(ranks, part.failure ? Result<void>(*part.failure) : success());
    if (!all_ran.ok()) {
      Error error = all_ran.error();
      error.what = "after the training, while measuring the input alone: " + error.what;
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
               input_overlap(outcome.figures.input_wait_s, sum_s / double(parts.size())));
  return success();
}

}  // namespace penstock
