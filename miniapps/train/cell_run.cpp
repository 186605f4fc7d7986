#include "miniapps/train/cell_run.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datagen/staging/overlay.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/saving_metrics.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/train_cache.hpp"
#include "miniapps/train/train_observers.hpp"
#include "miniapps/train/train_outcome.hpp"
#include "miniapps/train/train_team.hpp"
#include "miniapps/train/train_time.hpp"
#include "results/record/shared_metrics.hpp"

namespace penstock {
namespace {

// The input runs without an accelerator for at most kLongestAloneRun, but for at least kLeastAloneBatches
// batches even if they take longer. For the exception see run_input_alone().
constexpr std::chrono::seconds kLongestAloneRun{20};
constexpr uint64_t kLeastAloneBatches = 8;
constexpr std::chrono::milliseconds kClosingPoll{100};
constexpr std::chrono::milliseconds kCloseAfterInterrupt{400};  // longest wait for the workers after Ctrl-C
constexpr size_t kMostStepSamples = 100'000;  // a record has the raw times of at most this many steps

double peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) * 1024.0;
}

class CellRun {
 public:
  CellRun(const TrainPlan& plan, const Tier& tier, BatchPool& pool, TrainCache& cache, Trial& trial)
      : plan_(plan),
        ranks_(*plan.ranks),
        tier_(tier),
        pool_(pool),
        cache_(cache),
        trial_(trial),
        read_bytes_before_(tier.backend->moved_bytes().read),
        observers_(plan, tier, cache) {}

  // If a worker hangs, it may later still write spans into observers_. So the observers are not destroyed
  // then, but leaked.
  ~CellRun() {
    if (stuck_) observers_.abandon();
  }
  CellRun(const CellRun&) = delete;
  CellRun& operator=(const CellRun&) = delete;

  Result<void> measure();
  bool stuck() const { return stuck_; }

 private:
  void describe(std::chrono::nanoseconds step);
  Result<std::unique_ptr<BatchSource>> start_input(const PlanLimits& limits, SpanLog* spans = nullptr);
  Result<TrainOutcome> train(Accelerator& accelerator);
  Result<void> run_input_alone(uint64_t steps, unsigned parts, std::vector<TrainingRun>& runs);
  Result<void> close_input(std::unique_ptr<BatchSource> input);
  template <class Source>
  bool try_close(Source& source) const;
  Result<std::unique_ptr<Accelerator>> make_accelerators() const;
  Result<void> report_totals();
  Result<void> report(const TrainOutcome& outcome);

  const TrainPlan& plan_;
  Communicator& ranks_;
  const Tier& tier_;
  BatchPool& pool_;
  TrainCache& cache_;
  Trial& trial_;
  const uint64_t read_bytes_before_;  // bytes that this process had read from the tier before this run
  bool stuck_ = false;
  TrainObservers observers_;
};

void CellRun::describe(std::chrono::nanoseconds step) {
  record_corpus(plan_.corpus, trial_);
  const FileInput* const files = plan_.files();
  if (files != nullptr) trial_.corpus(files->corpus_facts);
  trial_.parameter("app", plan_.app->name);
  trial_.parameter("tier", tier_.name);
  trial_.parameter("accelerator", plan_.accelerator);
  trial_.parameter("accelerators", plan_.accelerators);
  trial_.parameter("au", plan_.required_utilization);
  trial_.parameter("step_s", std::chrono::duration<double>(step).count());
  trial_.parameter("batch", plan_.batch);
  trial_.parameter("prefetch", plan_.prefetch);
  trial_.parameter("threads", plan_.threads);
  trial_.parameter("depth", plan_.queue_depth(tier_));
  trial_.parameter("shuffle", shuffle_text(plan_.shuffle));
  trial_.parameter("layout", plan_.transform().layout + (pool_.shape().in_place ? ", in place" : ""));
  if (files != nullptr) {
    trial_.parameter("files", files->training.files.samples_of_object.size());
    trial_.parameter("validation_files",
                     files->validation ? files->validation->set.files.samples_of_object.size() : 0);
  } else {
    trial_.parameter("labels", plan_.corpus.manifest.facts().label_names.size());
  }
  if (ranks_.size() > 1) trial_.parameter("rank_scaling", "strong");
  if (plan_.saving) describe_saving(*plan_.saving, trial_);
}

// Starts the input on all ranks. If it fails on one rank, the other ranks close theirs and all return the
// error. Collective.
Result<std::unique_ptr<BatchSource>> CellRun::start_input(const PlanLimits& limits, SpanLog* spans) {
  Result<std::unique_ptr<BatchSource>> input = make_batches(plan_, tier_, pool_, limits, spans);
  const Result<void> all_started = all_ok(ranks_, input);
  if (all_started.ok()) return input;
  PENSTOCK_TRY(close_input(input.ok() ? *std::move(input) : nullptr));
  return all_started.error();
}

// Stops the workers of `source` and waits for them, at most for --stall-timeout; after Ctrl-C at most for 400
// ms. Returns false if a worker hangs in the back end. Only the training loop's thread calls it.
template <class Source>
bool CellRun::try_close(Source& source) const {
  const auto since = std::chrono::steady_clock::now();
  while (!source.close(kClosingPoll)) {
    if (source.stalled()) return false;
    if (interrupted()) return source.close(kCloseAfterInterrupt);
    const auto wait_time = std::chrono::steady_clock::now() - since;
    if (plan_.stall_timeout.count() != 0 && wait_time >= plan_.stall_timeout) return false;
  }
  return true;
}

// Stops the workers of the input and of validation. If a worker hangs on one rank, its source is leaked
// there, and the cell counts as stuck on all ranks. Collective.
Result<void> CellRun::close_input(std::unique_ptr<BatchSource> input) {
  if (input && !try_close(*input)) {
    static_cast<void>(input.release());
    stuck_ = true;
  }
  if (!try_close(observers_)) stuck_ = true;
  uint64_t any_stuck = stuck_ ? 1 : 0;
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&any_stuck, 1), Reduction::max));
  stuck_ = any_stuck != 0;
  return success();
}

// Trains, and returns the same outcome on each rank. If the measured work fails, the failure is in the
// outcome. A returned error is a bug or wrong usage. Collective.
Result<TrainOutcome> CellRun::train(Accelerator& accelerator) {
  PENSTOCK_TRY(observers_.make(accelerator.nominal_step()));
  PENSTOCK_TRY(ranks_.barrier());
  const SteadyTime start = std::chrono::steady_clock::now();
  observers_.start(start);
  PENSTOCK_ASSIGN(std::unique_ptr<BatchSource> input, start_input(plan_.limits, observers_.spans()));
  const TrainingRun run =
      run_training(*input, accelerator, start, observers_.list(), ranks_.size() == 1 ? nullptr : &ranks_);
  TrainOutcome own_outcome = train_outcome(run, accelerator.nominal_step(), *input, plan_.excluded_steps);
  observers_.count_losses(own_outcome);
  tier_.activity->errors += own_outcome.losses.skipped;
  PENSTOCK_TRY(close_input(std::move(input)));
  PENSTOCK_TRY(observers_.end(run, start, own_outcome, trial_));
  for (size_t i = 0; i < std::min(run.steps.size(), kMostStepSamples); ++i)
    trial_.sample(saving_metrics::kStep, double(run.steps[i].end_ns - run.steps[i].begin_ns) * 1e-9);
  if (ranks_.size() == 1) return own_outcome;
  return joined(ranks_, own_outcome);
}

// Runs the input without an accelerator, to measure how long it needs alone, and adds the run to `runs`. The
// measurement is divided into `parts` calls of this function. A call makes `steps` steps. It makes fewer if
// kLongestAloneRun / parts ends earlier, but at least kLeastAloneBatches / parts.
// With a cold cache and several epochs it always makes all steps: later epochs read from the warm cache, so
// fewer steps would not be comparable.
Result<void> CellRun::run_input_alone(uint64_t steps, unsigned parts, std::vector<TrainingRun>& runs) {
  const bool all_steps = plan_.cache == CacheRequest::cold && steps > plan_.steps_an_epoch();
  const uint64_t least_steps = kLeastAloneBatches / parts;
  const std::unique_ptr<Accelerator> idle = no_accelerator();
  PlanLimits limits{.start = plan_.limits.start};
  limits.batches = limits.start.batches + steps;
  PENSTOCK_TRY(ranks_.barrier());
  const SteadyTime start = std::chrono::steady_clock::now();
  const auto observers =
      observers_.make_alone(steps, all_steps ? steps : least_steps, start + kLongestAloneRun / parts);
  PENSTOCK_ASSIGN(std::unique_ptr<BatchSource> input, start_input(limits));
  runs.push_back(run_training(*input, *idle, start, observers));
  PENSTOCK_TRY(close_input(std::move(input)));
  observers_.end_alone();
  if (stuck_ && runs.back().failure) trial_.fail(*runs.back().failure);
  return success();
}

// Adds to the record the bytes that all ranks have read from the tier, and the largest peak memory of a rank.
// --find-accelerators makes several runs in one process: then only the bytes of this run are added, and no
// peak memory.
Result<void> CellRun::report_totals() {
  uint64_t read_bytes = tier_.backend->moved_bytes().read + cache_.warmed_bytes();
  if (&tier_ == &plan_.corpus.tier) read_bytes += plan_.corpus.mapped_bytes;
  if (plan_.searches_accelerators) read_bytes -= read_bytes_before_;
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&read_bytes, 1), Reduction::sum));
  trial_.sample(shared_metrics::kTierBytesRead, double(read_bytes));
  const auto rank_sum = [&](uint64_t bytes) -> Result<uint64_t> {
    PENSTOCK_TRY(ranks_.all_reduce(std::span(&bytes, 1), Reduction::sum));
    return bytes;
  };
  PENSTOCK_TRY(record_overlay(tier_, rank_sum, trial_));
  if (plan_.searches_accelerators) return success();
  double memory_bytes = peak_memory_bytes();
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&memory_bytes, 1), Reduction::max));
  trial_.sample(shared_metrics::kPeakMemory, memory_bytes);
  return success();
}

// Makes and prepares the accelerators of this process. Accelerators have consecutive numbers over all ranks.
Result<std::unique_ptr<Accelerator>> CellRun::make_accelerators() const {
  const uint64_t count = plan_.accelerators;
  PENSTOCK_ASSIGN(std::unique_ptr<Accelerator> result,
                  make_accelerator(plan_.accelerator, {.seed = plan_.seed,
                                                       .count = count,
                                                       .first_number = uint64_t(ranks_.rank()) * count,
                                                       .total_count = uint64_t(ranks_.size()) * count}));
  PENSTOCK_TRY(result->prepare(plan_.transform().layout, size_t(plan_.step_samples())));
  return result;
}

// Measures the cell: half of the run of the input alone, the training, and the other half (see
// measure_training()). Returns early if a worker hangs.
Result<void> CellRun::measure() {
  pool_.free_all_samples();
  const Result<std::unique_ptr<Accelerator>> made = make_accelerators();
  PENSTOCK_TRY(all_ok(ranks_, made));
  Accelerator& accelerator = **made;
  const std::chrono::nanoseconds step = accelerator.nominal_step();
  describe(step);
  PENSTOCK_TRY(observers_.open());
  if (plan_.in_memory())
    PENSTOCK_TRY(all_ok(
        ranks_, pool_.allocate_all_samples(plan_.corpus.manifest.samples(), size_t(plan_.step_samples()))));
  PENSTOCK_TRY(cache_.prepare());
  std::vector<TrainingRun> alone_runs;
  const bool measures_alone = !plan_.searches_accelerators && accelerator.computes();
  bool before_and_after =
      measures_alone && plan_.planned_steps() >= kLeastAloneBatches && cache_.keeps_cache_state();
  before_and_after = before_and_after && begin_part(plan_, kInputAlonePart, tier_);
  if (before_and_after) {
    PENSTOCK_TRY(run_input_alone(plan_.planned_steps() / 2, 2, alone_runs));
    if (stuck_) return success();
    const std::optional<Error>& failed = alone_runs.back().failure;
    if (const Result<void> all = all_ok(ranks_, failed ? Result<void>(*failed) : success()); !all.ok()) {
      Error error = all.error();
      error.what = "before the training, while measuring the input alone: " + error.what;
      trial_.fail(error);
      return observers_.write_timeline();
    }
    PENSTOCK_TRY(cache_.prepare());
    if (plan_.time_plan != nullptr) plan_.time_plan->resume(kTrainingPart);
  }
  cache_.record(trial_);
  PENSTOCK_ASSIGN(const TrainOutcome outcome, train(accelerator));
  PENSTOCK_TRY(report(outcome));
  accelerator.record(trial_);
  PENSTOCK_TRY(observers_.write_timeline());
  if (stuck_) return success();
  PENSTOCK_TRY(observers_.close_log());
  if (measures_alone && !outcome.failure && outcome.steps > 0 && begin_part(plan_, kInputAlonePart, tier_)) {
    if (plan_.cache != CacheRequest::asis) PENSTOCK_TRY(cache_.prepare());
    const uint64_t rest_steps = before_and_after ? outcome.steps - outcome.steps / 2 : outcome.steps;
    PENSTOCK_TRY(run_input_alone(rest_steps, before_and_after ? 2 : 1, alone_runs));
    if (stuck_) return success();
    PENSTOCK_TRY(record_input_alone(ranks_, alone_runs, outcome, trial_));
  }
  return report_totals();
}

// Adds the outcome to the record. The record of --find-accelerators is about several runs, so values that
// describe a single run are left out there.
Result<void> CellRun::report(const TrainOutcome& outcome) {
  PENSTOCK_TRY(observers_.record(outcome, trial_));
  record_outcome(outcome, plan_, trial_);
  if (!plan_.searches_accelerators && outcome.figures.wall_s > 0) {
    Series series;
    series.append_seconds(outcome.bytes_by_second, outcome.figures.wall_s);
    trial_.series(shared_metrics::kPayloadSeries, std::move(series));
  }
  return success();
}

}  // namespace

Result<bool> measure_training(const TrainPlan& plan, const Tier& tier, BatchPool& pool, Trial& trial) {
  const Result<std::unique_ptr<TrainCache>> cache = TrainCache::make(plan, tier);
  PENSTOCK_TRY(all_ok(*plan.ranks, cache));
  CellRun cell(plan, tier, pool, **cache, trial);
  const Result<void> measured = cell.measure();
  // Set after the run, so that the record includes the calls that the run made to the tier.
  trial.tier("data", tier);
  if (plan.checkpoint_tier) trial.tier("checkpoint", *plan.checkpoint_tier);
  if (!cell.stuck()) return measured.ok() ? Result<bool>(true) : measured.error();
  if (!measured.ok()) trial.fail(measured.error());
  if (verdict_exit_code(trial.record().verdict) == 0)
    trial.fail(make_error(Errc::timed_out, "a call of the back end has not returned"));
  return false;
}

}  // namespace penstock
