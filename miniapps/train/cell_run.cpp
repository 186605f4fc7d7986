#include "miniapps/train/cell_run.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datagen/cache/cache_control.hpp"
#include "datagen/cache/prepare_together.hpp"
#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/staging/overlay.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/saving_metrics.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/epoch_checkpoints.hpp"
#include "miniapps/train/sample_log.hpp"
#include "miniapps/train/timeline.hpp"
#include "miniapps/train/train_outcome.hpp"
#include "miniapps/train/validating.hpp"
#include "profiling/interpose/penstock_profile.h"
#include "results/record/shared_metrics.hpp"

namespace penstock {
namespace {

constexpr std::chrono::seconds kAloneLongest{20};  // of input without an accelerator, once it made
constexpr std::uint64_t kAloneBatches = 8;         // at least these batches
constexpr std::chrono::milliseconds kClosingPoll{100};
constexpr std::chrono::milliseconds kClosingInterrupted{400};  // for workers, once the user wants to go
constexpr std::size_t kStepsKept = 100'000;                    // raw step times in a record

double peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0;
}

// Proof of I/O: what devices and servers delivered while the accelerator was in an epoch. What is delivered
// before the first step of an epoch has ended counts to the epoch before (to the first one, what is before
// its own): it was read ahead, all or in part. One thread.
class EpochCounter final : public StepObserver {
 public:
  // `validating` may be null; what it reads is counted with the epoch before it. It comes earlier in the list
  // of observers.
  EpochCounter(const Tier& tier, const Validating* validating)
      : tier_(tier), validating_(validating), fetched_before_(fetched()) {}

  Result<bool> before_step(std::uint64_t /*steps*/, const Batch* /*next*/) override {
    if (validating_ == nullptr) return false;
    const std::uint64_t before = std::exchange(validated_, validating_->bytes());
    if (!epochs_.empty()) epochs_.back().consumed += validated_ - before;
    return false;
  }
  Result<bool> after_step(std::uint64_t /*step*/, const Batch& batch) override {
    if (epochs_.empty() || batch.epoch != epoch_) begin(batch.epoch);
    epochs_.back().consumed += std::accumulate(batch.length.begin(), batch.length.end(), std::uint64_t{0});
    return true;
  }
  // Of all epochs; none where the bytes are not counted.
  std::vector<EpochBytes> finish() {
    settle();
    return fetched_before_ ? std::move(epochs_) : std::vector<EpochBytes>();
  }

 private:
  // The kernel does not see what comes by a network connection of our own.
  std::optional<std::uint64_t> fetched() const {
    if (tier_.backend->caps().network) return tier_.backend->moved_bytes().read;
    return device_bytes_read();
  }
  void begin(std::uint64_t epoch) {
    settle();
    epoch_ = epoch;
    epochs_.emplace_back();
  }
  void settle() {
    const std::optional<std::uint64_t> now = fetched();
    if (!epochs_.empty() && now && fetched_before_) {
      epochs_.back().fetched = *now - *fetched_before_;
      fetched_before_ = now;
    }
  }

  const Tier& tier_;
  const Validating* const validating_;
  std::uint64_t validated_ = 0;  // its bytes so far
  std::optional<std::uint64_t> fetched_before_;
  std::uint64_t epoch_ = 0;
  std::vector<EpochBytes> epochs_;
};

// Counts the steps for the user, and ends a run that may end before its limits.
class StepCounter final : public StepObserver {
 public:
  StepCounter(bool shown, const std::string& what, std::uint64_t steps, bool profiled)
      : progress_(shown, what, steps, "steps"), profiled_(profiled) {}

  // Enough is this number of steps, and this time; without it the run has all its batches.
  void end_after(std::uint64_t steps, SteadyTime time) {
    enough_steps_ = steps;
    enough_ = time;
  }
  Result<bool> after_step(std::uint64_t step, const Batch& /*batch*/) override {
    progress_.advance(1);
    // Only marks the step; its spans come when all is over (profile_steps()).
    if (profiled_ && penstock_profile_step != nullptr) penstock_profile_step();
    return enough_steps_ == 0 || step + 1 < enough_steps_ || std::chrono::steady_clock::now() < enough_;
  }

 private:
  Progress progress_;
  const bool profiled_;
  std::uint64_t enough_steps_ = 0;
  SteadyTime enough_ = SteadyTime::max();
};

class CellRun {
 public:
  CellRun(const TrainPlan& plan, const SampleList& samples, const Tier& tier, BatchPool& pool,
          StepCheckpoints* saves, Trial& trial)
      : plan_(plan),
        ranks_(*plan.ranks),
        tier_(tier),
        pool_(pool),
        saves_(saves),
        trial_(trial),
        cache_(tier, plan.corpus.manifest, samples, plan.cache, ColdMethod::evict,
               static_cast<unsigned>(plan.threads)),
        read_before_(tier.backend->moved_bytes().read) {}

  // What hangs may go on to write spans.
  ~CellRun() {
    if (!stuck_) return;
    static_cast<void>(timeline_.release());
    static_cast<void>(profiled_.release());
  }
  CellRun(const CellRun&) = delete;
  CellRun& operator=(const CellRun&) = delete;

  Result<void> measure();
  bool stuck() const { return stuck_; }

 private:
  void describe(std::chrono::nanoseconds step);
  Result<CacheOutcome> prepare();
  Result<std::unique_ptr<BatchSource>> start_input(const PlanLimits& limits, SpanLog* spans = nullptr);
  Result<TrainOutcome> train(Accelerator& accelerator, SampleLog* log);
  void end_saving(const TrainingRun& run, SteadyTime start, TrainOutcome& mine);
  bool alone_on_both_sides(const CacheState& state) const;
  Result<void> input_alone(std::uint64_t steps, unsigned parts, std::vector<TrainingRun>& alone);
  template <class Source>
  void close_source(std::unique_ptr<Source> source);
  Result<void> quarantine_copy(std::unique_ptr<BatchSource> input,
                               std::unique_ptr<Validating> validating = nullptr);
  template <class Source>
  bool closed(Source& source) const;
  Result<std::unique_ptr<Accelerator>> make_accelerators() const;
  Result<void> report_totals();
  void report(const TrainOutcome& outcome, CacheState cache);
  std::string of_this_tier(const std::string& path, std::size_t before) const;
  Result<SampleLog> open_log() const;
  Result<void> reserve_memory();
  Result<void> make_timeline();
  Result<void> write_timeline();

  const TrainPlan& plan_;
  Communicator& ranks_;
  const Tier& tier_;
  BatchPool& pool_;
  StepCheckpoints* const saves_;  // with --checkpoint-every
  Trial& trial_;
  CacheControl cache_;
  const std::uint64_t read_before_;  // from the tier, by whatever came before
  MemoryRoom room_;                  // of an app that holds all samples
  bool stuck_ = false;
  std::unique_ptr<Timeline> timeline_;  // with --timeline
  std::unique_ptr<SpanLog> profiled_;   // without, but under the profiler: it keeps nothing itself
};

void CellRun::describe(std::chrono::nanoseconds step) {
  record_corpus(plan_.corpus, trial_);
  const FileInput* const files = plan_.files();
  if (files != nullptr) trial_.corpus(files->facts);
  trial_.parameter("app", plan_.app->name);
  trial_.parameter("tier", tier_.name);
  trial_.parameter("accelerator", plan_.accelerator);
  trial_.parameter("accelerators", plan_.accelerators);
  trial_.parameter("au", plan_.busy_at_least);
  trial_.parameter("step_s", std::chrono::duration<double>(step).count());
  trial_.parameter("batch", plan_.batch);
  trial_.parameter("prefetch", plan_.prefetch);
  trial_.parameter("threads", plan_.threads);
  trial_.parameter("depth", plan_.queue_depth(tier_));
  trial_.parameter("shuffle", shuffle_text(plan_.shuffle));
  trial_.parameter("layout", plan_.transform().layout + (pool_.shape().in_place ? ", in place" : ""));
  if (files != nullptr) {
    trial_.parameter("files", files->training.files.held.size());
    trial_.parameter("validation_files", files->validation ? files->validation->set.files.held.size() : 0);
  } else {
    trial_.parameter("labels", plan_.corpus.manifest.facts().label_names.size());
  }
  if (ranks_.size() > 1) trial_.parameter("rank_scaling", "strong");
  if (plan_.saving) describe_saving(*plan_.saving, trial_);
  if (plan_.resumed) describe_resumed(*plan_.resumed, trial_);
}

Result<CacheOutcome> CellRun::prepare() {
  return prepare_together(ranks_, cache_, WhoPrepares::one_a_node).outcome;
}

// On all ranks, or on none.
Result<std::unique_ptr<BatchSource>> CellRun::start_input(const PlanLimits& limits, SpanLog* spans) {
  Result<std::unique_ptr<BatchSource>> input = make_batches(plan_, tier_, pool_, room_, limits, spans);
  const Result<void> all = agree(ranks_, outcome_of(input));
  if (all.ok()) return input;
  PENSTOCK_TRY(quarantine_copy(input.ok() ? *std::move(input) : nullptr));
  return all.error();
}

// Whether its workers came to their end, in a time that does not try the user's patience.
template <class Source>
bool CellRun::closed(Source& source) const {
  const auto since = std::chrono::steady_clock::now();
  while (!source.close(kClosingPoll)) {
    if (source.stalled()) return false;
    if (interrupted()) return source.close(kClosingInterrupted);
    const auto waited = std::chrono::steady_clock::now() - since;
    if (plan_.patience.count() != 0 && waited >= plan_.patience) return false;
  }
  return true;
}

// One that does not come to its end is left as it is: the cell is stuck.
template <class Source>
void CellRun::close_source(std::unique_ptr<Source> source) {
  if (!source || closed(*source)) return;
  static_cast<void>(source.release());
  stuck_ = true;
}

// Collective: where one rank is stuck, all are.
Result<void> CellRun::quarantine_copy(std::unique_ptr<BatchSource> input,
                                      std::unique_ptr<Validating> validating) {
  close_source(std::move(input));
  close_source(std::move(validating));
  std::uint64_t any = stuck_ ? 1 : 0;
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&any, 1), Reduction::max));
  stuck_ = any != 0;
  return success();
}

// The path; for tiers other than the corpus's own with their name in it, before that position.
std::string CellRun::of_this_tier(const std::string& path, std::size_t before) const {
  if (&tier_ == &plan_.corpus.tier) return path;
  return path.substr(0, before) + "." + tier_.name + path.substr(before);
}

Result<SampleLog> CellRun::open_log() const {
  const std::string path = of_this_tier(plan_.sample_log, plan_.sample_log.size());
  if (!plan_.resumed) return SampleLog::open(path, ranks_.rank(), ranks_.size());
  return SampleLog::go_on(
      path, ranks_.rank(), ranks_.size(),
      {.steps = plan_.limits.start.batches, .ranks = static_cast<int>(plan_.resumed->manifest.ranks)});
}

// Room for all samples, of an app that holds them. exhausted where there is less.
Result<void> CellRun::reserve_memory() {
  if (!plan_.in_memory()) return success();
  PENSTOCK_ASSIGN(room_, memory_room(plan_.corpus.manifest.samples(), plan_.transform().slot_bytes,
                                     static_cast<std::size_t>(plan_.step_samples())));
  return success();
}

Result<void> CellRun::make_timeline() {
  PENSTOCK_ASSIGN(timeline_, Timeline::make({.path = of_this_tier(plan_.timeline, plan_.timeline.rfind('.')),
                                             .memory = plan_.timeline_memory,
                                             .threads = static_cast<unsigned>(plan_.threads),
                                             .stages = plan_.transform().stages.size(),
                                             .samples = plan_.planned_loads(),
                                             .epochs = plan_.planned_steps() / plan_.steps_an_epoch() + 2},
                                            ranks_));
  return success();
}

Result<void> CellRun::write_timeline() {
  const auto stages = plan_.transform().stages;
  return timeline_->write({.manifest = plan_.corpus.manifest,
                           .stages = {stages.begin(), stages.end()},
                           .shuffle = plan_.shuffle});
}

// The training, over all ranks: what it came to is the same on each. An error is one of ours.
Result<TrainOutcome> CellRun::train(Accelerator& accelerator, SampleLog* log) {
  const std::string many =
      plan_.accelerators == 1 ? "" : ", " + std::to_string(plan_.accelerators) + " accelerators";
  StepCounter steps(plan_.progress, std::string(plan_.app->name) + " on " + tier_.name + many,
                    plan_.planned_steps(), true);
  StepBarrier together(ranks_);
  Result<std::unique_ptr<Validating>> made = make_validating(plan_, tier_, accelerator.nominal_step());
  PENSTOCK_TRY(agree(ranks_, outcome_of(made)));
  std::unique_ptr<Validating> validating = *std::move(made);
  // What is validated from another place is not among the bytes that the epochs are held against.
  const bool counted = plan_.files() == nullptr || plan_.files()->validation_backend == nullptr;
  EpochCounter epochs(tier_, counted ? validating.get() : nullptr);
  Result<std::unique_ptr<EpochCheckpoints>> saves = make_epoch_checkpoints(plan_);
  PENSTOCK_TRY(agree(ranks_, outcome_of(saves)));
  const std::unique_ptr<EpochCheckpoints> checkpoints = *std::move(saves);
  if (log != nullptr && saves_ != nullptr) log->flush_before(*saves_);
  // Checkpoints after validation, as it is what they are chosen by; the log before step checkpoints are held.
  std::vector<StepObserver*> observers{validating.get(), &steps, &epochs, saves_, log, checkpoints.get()};
  std::erase(observers, nullptr);
  Result<std::unique_ptr<SpanLog>> profiled = std::unique_ptr<SpanLog>();
  if (!timeline_ && spans_are_profiled())
    profiled = SpanLog::make(std::vector<std::size_t>(static_cast<std::size_t>(plan_.threads) + 1));
  PENSTOCK_TRY(agree(ranks_, outcome_of(profiled)));  // others may not be profiled
  profiled_ = *std::move(profiled);
  PENSTOCK_ASSIGN(const SteadyTime start, together.begin());
  if (plan_.enough_steps != 0) steps.end_after(plan_.enough_steps, start + plan_.enough);
  PENSTOCK_ASSIGN(std::unique_ptr<BatchSource> input,
                  start_input(plan_.limits, timeline_ ? &timeline_->log() : profiled_.get()));
  const TrainingRun run =
      run_training(*input, accelerator, start, observers, ranks_.size() == 1 ? nullptr : &together);
  TrainOutcome mine = train_outcome(run, accelerator.nominal_step(), *input, epochs.finish());
  if (validating) add_validation(*validating, mine);
  if (checkpoints) mine.checkpoints = checkpoints->figures();
  PENSTOCK_TRY(quarantine_copy(std::move(input), std::move(validating)));
  const penstock_component before_step =
      checkpoints || saves_ != nullptr ? PENSTOCK_CHECKPOINT : PENSTOCK_VALIDATION;
  if (timeline_) mine.timeline = timeline_->end(run, start, before_step);
  profile_steps(run, start, before_step);
  if (saves_ != nullptr) end_saving(run, start, mine);
  PENSTOCK_TRY(agree(ranks_, log == nullptr ? success() : log->outcome()));
  for (std::size_t i = 0; i < std::min(run.steps.size(), kStepsKept); ++i)
    trial_.sample(saving_metrics::kStep,
                  static_cast<double>(run.steps[i].end_ns - run.steps[i].begin_ns) * 1e-9);
  return joined(ranks_, mine);
}

void CellRun::end_saving(const TrainingRun& run, SteadyTime start, TrainOutcome& mine) {
  const Result<void> drained = saves_->drain_or_leave();
  saves_->record(run, start, plan_.steps_are_work(), trial_);
  if (!drained.ok() && !mine.failure) mine.failure = drained.error();
}

// Whether the pipeline can also run by itself before the training, without leaving it another cache: because
// that is prepared anew, has nothing to change, or holds everything already. A cold cache gets warm over the
// epochs, so that more than one of them cannot be divided.
bool CellRun::alone_on_both_sides(const CacheState& state) const {
  if (plan_.planned_steps() < kAloneBatches) return false;
  if (plan_.cache == CacheRequest::cold) return plan_.planned_steps() <= plan_.steps_an_epoch();
  return plan_.cache == CacheRequest::warm || state.client_data == "memory" ||
         state.client_data == "bypassed" || state.resident_fraction_before.value_or(0) >= kWarmAtLeast;
}

// One of `parts` samples of the pipeline without an accelerator: that many steps, or as many as fit into its
// share of the time, save for the epochs of a cold cache.
Result<void> CellRun::input_alone(std::uint64_t steps, unsigned parts, std::vector<TrainingRun>& alone) {
  const bool all = plan_.cache == CacheRequest::cold && steps > plan_.steps_an_epoch();
  const std::uint64_t least = kAloneBatches / parts;
  StepCounter counter(plan_.progress, std::string(plan_.app->name) + "'s input alone on " + tier_.name, steps,
                      false);
  StepObserver* const observers[] = {&counter};
  const std::unique_ptr<Accelerator> nothing = no_accelerator();
  PlanLimits limits{.start = plan_.limits.start};
  limits.batches = limits.start.batches + steps;
  PENSTOCK_TRY(ranks_.barrier());
  const SteadyTime start = std::chrono::steady_clock::now();
  if (!all) counter.end_after(least, start + kAloneLongest / parts);
  PENSTOCK_ASSIGN(std::unique_ptr<BatchSource> input, start_input(limits));
  alone.push_back(run_training(*input, *nothing, start, observers));
  PENSTOCK_TRY(quarantine_copy(std::move(input)));
  if (stuck_ && alone.back().failure) trial_.fail(*alone.back().failure);
  return success();
}

// Of this process so far; of a search, whose runs follow each other in it, what this run read.
Result<void> CellRun::report_totals() {
  std::uint64_t read = tier_.backend->moved_bytes().read + cache_.warmed_bytes();
  if (&tier_ == &plan_.corpus.tier) read += plan_.corpus.mapped_bytes;
  if (plan_.find_accelerators) read -= read_before_;
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&read, 1), Reduction::sum));
  trial_.sample(shared_metrics::kTierBytesRead, static_cast<double>(read));
  const auto over_ranks = [&](std::uint64_t bytes) -> Result<std::uint64_t> {
    PENSTOCK_TRY(ranks_.all_reduce(std::span(&bytes, 1), Reduction::sum));
    return bytes;
  };
  PENSTOCK_TRY(record_overlay(tier_, over_ranks, trial_));
  if (plan_.find_accelerators) return success();
  double memory = peak_memory_bytes();
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&memory, 1), Reduction::max));
  trial_.sample(shared_metrics::kPeakMemory, memory);
  return success();
}

// The accelerators of this process, among those of all ranks, ready for its batches.
Result<std::unique_ptr<Accelerator>> CellRun::make_accelerators() const {
  const std::uint64_t count = plan_.accelerators;
  PENSTOCK_ASSIGN(
      std::unique_ptr<Accelerator> made,
      make_accelerator(plan_.accelerator, {.seed = plan_.seed,
                                           .count = count,
                                           .first = static_cast<std::uint64_t>(ranks_.rank()) * count,
                                           .in_all = static_cast<std::uint64_t>(ranks_.size()) * count}));
  PENSTOCK_TRY(made->prepare(plan_.transform().layout, static_cast<std::size_t>(plan_.step_samples())));
  return made;
}

// Ends early where it is stuck.
Result<void> CellRun::measure() {
  const Result<std::unique_ptr<Accelerator>> made = make_accelerators();
  PENSTOCK_TRY(agree(ranks_, outcome_of(made)));
  Accelerator& accelerator = **made;
  const std::chrono::nanoseconds step = accelerator.nominal_step();
  describe(step);
  std::optional<SampleLog> log;
  if (!plan_.sample_log.empty()) {
    Result<SampleLog> opened = open_log();
    PENSTOCK_TRY(agree(ranks_, outcome_of(opened)));
    log = *std::move(opened);
  }
  if (!plan_.timeline.empty()) PENSTOCK_TRY(make_timeline());
  PENSTOCK_TRY(agree(ranks_, reserve_memory()));
  PENSTOCK_ASSIGN(CacheOutcome cache, prepare());
  std::vector<TrainingRun> alone;
  const bool with_alone = !plan_.find_accelerators && accelerator.computes();
  const bool both_sides = with_alone && alone_on_both_sides(cache.state);
  if (both_sides) {
    PENSTOCK_TRY(input_alone(plan_.planned_steps() / 2, 2, alone));
    if (stuck_) return success();
    const std::optional<Error>& failed = alone.back().failure;
    if (const Result<void> all = agree(ranks_, failed ? Result<void>(*failed) : success()); !all.ok()) {
      Error error = all.error();
      error.what = "before the training, while the input alone was measured: " + error.what;
      trial_.fail(error);
      return timeline_ ? write_timeline() : success();
    }
    PENSTOCK_ASSIGN(cache, prepare());
  }
  trial_.cache(cache_json(cache.state));
  trial_.verdict(cache.verdict, cache.reason);
  PENSTOCK_ASSIGN(const TrainOutcome outcome, train(accelerator, log ? &*log : nullptr));
  report(outcome, cache.state);
  for (const AcceleratorFact& fact : accelerator.facts()) trial_.sample(fact.metric, fact.value);
  if (timeline_) PENSTOCK_TRY(write_timeline());
  if (stuck_) return success();
  if (log) PENSTOCK_TRY(agree(ranks_, log->close()));
  if (with_alone && !outcome.failure && outcome.steps > 0) {
    if (plan_.cache != CacheRequest::asis) PENSTOCK_TRY(prepare());
    const std::uint64_t rest = both_sides ? outcome.steps - outcome.steps / 2 : outcome.steps;
    PENSTOCK_TRY(input_alone(rest, both_sides ? 2 : 1, alone));
    if (stuck_) return success();
    PENSTOCK_TRY(record_input_alone(ranks_, alone, outcome, trial_));
  }
  return report_totals();
}

// A search's record has several runs: what is of one alone is left out.
void CellRun::report(const TrainOutcome& outcome, CacheState cache) {
  record_outcome(outcome, plan_, trial_);
  const bool in_memory = tier_.facts.memory || tier_.backend->caps().volatile_memory;
  const std::optional<double> fraction = device_bytes_fraction(outcome.epochs, cache);
  if (fraction && !in_memory && !plan_.in_memory() && !tier_.backend->caps().network) {
    cache.device_bytes_fraction = fraction;
    trial_.cache(cache_json(cache));
  }
  if (plan_.find_accelerators) return;
  if (fraction && !in_memory && !plan_.in_memory()) record_epochs(outcome.epochs, trial_);
  if (outcome.figures.wall_s > 0) trial_.series("payload_bytes", 1.0, outcome.bytes_by_second);
}

}  // namespace

Result<CellEnd> measure_training(const TrainPlan& plan, const Tier& tier, BatchPool& pool,
                                 StepCheckpoints* saves, Trial& trial) {
  const Result<SampleList> samples = corpus_samples(plan.corpus.manifest);
  PENSTOCK_TRY(agree(*plan.ranks, outcome_of(samples)));
  CellRun cell(plan, *samples, tier, pool, saves, trial);
  const Result<void> measured = cell.measure();
  trial.tier("data", tier);  // with what was called there
  if (plan.checkpoints) trial.tier("checkpoint", *plan.checkpoints);
  if (!cell.stuck()) return measured.ok() ? Result<CellEnd>(CellEnd::done) : measured.error();
  if (!measured.ok()) trial.fail(measured.error());
  if (verdict_exit_code(trial.record().verdict) == 0)
    trial.fail(make_error(Errc::timed_out, "a call into the back end has not come back"));
  return CellEnd::stuck;
}

}  // namespace penstock
