#include "miniapps/train/train_cell.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
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
#include "miniapps/train/epoch_counter.hpp"
#include "miniapps/train/sample_log.hpp"
#include "miniapps/train/step_checkpoints.hpp"
#include "miniapps/train/timeline.hpp"
#include "miniapps/train/train_input.hpp"
#include "miniapps/train/train_outcome.hpp"
#include "miniapps/train/train_record.hpp"
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

class Cell {
 public:
  Cell(const TrainSetup& setup, const Corpus& corpus, const SampleList& samples, const Tier& tier,
       BatchPool& pool, Trial& trial)
      : setup_(setup),
        ranks_(*setup.ranks),
        corpus_(corpus),
        tier_(tier),
        input_(setup, corpus, tier, pool),
        trial_(trial),
        cache_(tier, corpus.manifest, samples, setup.cache, ColdMethod::evict, setup.threads),
        read_before_(tier.backend->moved_bytes().read) {}

  // What hangs may go on to write spans.
  ~Cell() {
    if (!stuck_) return;
    static_cast<void>(timeline_.release());
    static_cast<void>(profiled_.release());
  }
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  Result<void> measure();
  bool stuck() const { return stuck_; }

 private:
  void describe(std::chrono::nanoseconds step);
  Result<CacheOutcome> prepare();
  Result<std::unique_ptr<BatchSource>> start_input(const PlanLimits& limits, SpanLog* spans = nullptr);
  Result<TrainOutcome> train(Accelerator& accelerator, SampleLog* log);
  Result<void> write_step(SampleLog& log, std::uint64_t step, const Batch& batch) const;
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
  Result<void> make_timeline();
  Result<void> write_timeline();

  const TrainSetup& setup_;
  Communicator& ranks_;
  const Corpus& corpus_;
  const Tier& tier_;
  TrainInput input_;
  Trial& trial_;
  CacheControl cache_;
  const std::uint64_t read_before_;  // from the tier, by whatever came before
  bool stuck_ = false;
  std::unique_ptr<Timeline> timeline_;  // with --timeline
  std::unique_ptr<SpanLog> profiled_;   // without, but under the profiler: it keeps nothing itself
};

void Cell::describe(std::chrono::nanoseconds step) {
  record_corpus(corpus_, trial_);
  if (setup_.files) trial_.corpus(setup_.files->facts);
  trial_.parameter("app", setup_.app->name);
  trial_.parameter("tier", tier_.name);
  trial_.parameter("accelerator", setup_.accelerator);
  trial_.parameter("accelerators", setup_.accelerators);
  trial_.parameter("au", setup_.busy_at_least);
  trial_.parameter("step_s", std::chrono::duration<double>(step).count());
  trial_.parameter("batch", setup_.batch);
  trial_.parameter("prefetch", setup_.prefetch);
  trial_.parameter("threads", setup_.threads);
  trial_.parameter("depth", input_.depth());
  trial_.parameter("shuffle", shuffle_text(setup_.shuffle));
  trial_.parameter("layout", std::string(setup_.treats().layout()) + (input_.in_place() ? ", in place" : ""));
  if (setup_.files) {
    trial_.parameter("files", setup_.files->plan.training.files.held.size());
    const std::optional<Validation>& validation = setup_.files->plan.validation;
    trial_.parameter("validation_files", validation ? validation->set.files.held.size() : 0);
  } else {
    trial_.parameter("labels", corpus_.manifest.facts().label_names.size());
  }
  if (ranks_.size() > 1) trial_.parameter("rank_scaling", "strong");
  describe_saving(setup_, trial_);
}

Result<CacheOutcome> Cell::prepare() {
  return prepare_together(ranks_, cache_, WhoPrepares::one_a_node).outcome;
}

// On all ranks, or on none.
Result<std::unique_ptr<BatchSource>> Cell::start_input(const PlanLimits& limits, SpanLog* spans) {
  Result<std::unique_ptr<BatchSource>> input = input_.make(limits, spans);
  const Result<void> all = agree(ranks_, outcome_of(input));
  if (all.ok()) return input;
  PENSTOCK_TRY(quarantine_copy(input.ok() ? *std::move(input) : nullptr));
  return all.error();
}

// Whether its workers came to their end, in a time that does not try the user's patience.
template <class Source>
bool Cell::closed(Source& source) const {
  const auto since = std::chrono::steady_clock::now();
  while (!source.close(kClosingPoll)) {
    if (source.stalled()) return false;
    if (interrupted()) return source.close(kClosingInterrupted);
    const auto waited = std::chrono::steady_clock::now() - since;
    if (setup_.patience.count() != 0 && waited >= setup_.patience) return false;
  }
  return true;
}

// One that does not come to its end is left as it is: the cell is stuck.
template <class Source>
void Cell::close_source(std::unique_ptr<Source> source) {
  if (!source || closed(*source)) return;
  static_cast<void>(source.release());
  stuck_ = true;
}

// Collective: where one rank is stuck, all are.
Result<void> Cell::quarantine_copy(std::unique_ptr<BatchSource> input,
                                   std::unique_ptr<Validating> validating) {
  close_source(std::move(input));
  close_source(std::move(validating));
  std::uint64_t any = stuck_ ? 1 : 0;
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&any, 1), Reduction::max));
  stuck_ = any != 0;
  return success();
}

// The path; for tiers other than the corpus's own with their name in it, before that position.
std::string Cell::of_this_tier(const std::string& path, std::size_t before) const {
  if (&tier_ == &corpus_.tier) return path;
  return path.substr(0, before) + "." + tier_.name + path.substr(before);
}

Result<SampleLog> Cell::open_log() const {
  const std::string path = of_this_tier(setup_.sample_log, setup_.sample_log.size());
  if (!setup_.resumed) return SampleLog::open(path, ranks_.rank(), ranks_.size());
  return SampleLog::go_on(
      path, ranks_.rank(), ranks_.size(),
      {.steps = setup_.limits.start.batches, .ranks = static_cast<int>(setup_.resumed->manifest.ranks)});
}

Result<void> Cell::make_timeline() {
  PENSTOCK_ASSIGN(timeline_,
                  Timeline::make({.path = of_this_tier(setup_.timeline, setup_.timeline.rfind('.')),
                                  .memory = setup_.timeline_memory,
                                  .threads = setup_.threads,
                                  .stages = setup_.treats().stages().size(),
                                  .samples = input_.planned_loads(),
                                  .epochs = input_.planned_steps() / input_.steps_an_epoch() + 2},
                                 ranks_));
  return success();
}

Result<void> Cell::write_timeline() {
  const auto stages = setup_.treats().stages();
  return timeline_->write(
      {.manifest = corpus_.manifest, .stages = {stages.begin(), stages.end()}, .shuffle = setup_.shuffle});
}

// The training, over all ranks: what it came to is the same on each. An error is one of ours.
Result<TrainOutcome> Cell::train(Accelerator& accelerator, SampleLog* log) {
  const std::string many =
      setup_.accelerators == 1 ? "" : ", " + std::to_string(setup_.accelerators) + " accelerators";
  Progress progress(setup_.progress, std::string(setup_.app->name) + " on " + tier_.name + many,
                    input_.planned_steps(), "steps");
  StepBarrier together(ranks_);
  std::optional<Error> log_failure;
  EpochCounter epochs(tier_);
  Result<std::unique_ptr<Validating>> made = input_.make_validating(accelerator.nominal_step());
  PENSTOCK_TRY(agree(ranks_, outcome_of(made)));
  std::unique_ptr<Validating> validating = *std::move(made);
  Result<std::unique_ptr<EpochCheckpoints>> saves = input_.make_checkpoints();
  PENSTOCK_TRY(agree(ranks_, outcome_of(saves)));
  const std::unique_ptr<EpochCheckpoints> checkpoints = *std::move(saves);
  Result<std::unique_ptr<SpanLog>> profiled = std::unique_ptr<SpanLog>();
  if (!timeline_ && spans_are_profiled())
    profiled = SpanLog::make(std::vector<std::size_t>(setup_.threads + 1));
  PENSTOCK_TRY(agree(ranks_, outcome_of(profiled)));  // others may not be profiled
  profiled_ = *std::move(profiled);
  PENSTOCK_ASSIGN(const SteadyTime start, together.begin());
  PENSTOCK_ASSIGN(std::unique_ptr<BatchSource> input,
                  start_input(setup_.limits, timeline_ ? &timeline_->log() : profiled_.get()));
  const TrainingRun run = run_training(
      *input, accelerator, start,
      [&](std::uint64_t step, const Batch& batch) -> Result<bool> {
        progress.advance(1);
        if (penstock_profile_step != nullptr) penstock_profile_step();  // its spans come when all is over
        epochs.step(batch);
        if (setup_.saves != nullptr) setup_.saves->step(batch);
        const Result<void> written = log == nullptr ? success() : write_step(*log, step, batch);
        if (!written.ok()) {
          log_failure = written.error();
          return *log_failure;
        }
        return setup_.enough_steps == 0 || step + 1 < setup_.enough_steps ||
               std::chrono::steady_clock::now() - start < setup_.enough;
      },
      ranks_.size() == 1 ? nullptr : &together,
      between_steps(setup_, validating.get(), checkpoints.get(), epochs),
      setup_.saves == nullptr ? StepCollective{} : setup_.saves->collective());
  TrainOutcome mine = train_outcome(run, accelerator.nominal_step(), *input, epochs.finish());
  if (validating) add_validation(*validating, mine);
  if (checkpoints) mine.checkpoints = checkpoints->figures();
  PENSTOCK_TRY(quarantine_copy(std::move(input), std::move(validating)));
  const penstock_component before_step =
      checkpoints || setup_.saves ? PENSTOCK_CHECKPOINT : PENSTOCK_VALIDATION;
  if (timeline_) mine.timeline = timeline_->end(run, start, before_step);
  profile_steps(run, start, before_step);
  if (setup_.saves != nullptr) end_saving(run, start, mine);
  PENSTOCK_TRY(agree(ranks_, log_failure ? Result<void>(*log_failure) : success()));
  for (std::size_t i = 0; i < std::min(run.steps.size(), kStepsKept); ++i)
    trial_.sample(saving_metrics::kStep,
                  static_cast<double>(run.steps[i].end_ns - run.steps[i].begin_ns) * 1e-9);
  return joined(ranks_, mine);
}

// A checkpoint behind this step says that its samples were used: their lines outlive the process, too.
Result<void> Cell::write_step(SampleLog& log, std::uint64_t step, const Batch& batch) const {
  PENSTOCK_TRY(log.step(setup_.limits.start.batches + step, batch));
  return setup_.saves != nullptr && setup_.saves->due(step + 1) ? log.flush() : success();
}

void Cell::end_saving(const TrainingRun& run, SteadyTime start, TrainOutcome& mine) {
  const Result<void> drained = setup_.saves->drain_or_leave();
  setup_.saves->record(run, start, setup_.steps_are_work(), trial_);
  if (!drained.ok() && !mine.failure) mine.failure = drained.error();
}

// Whether the pipeline can also run by itself before the training, without leaving it another cache: because
// that is prepared anew, has nothing to change, or holds everything already. A cold cache gets warm over the
// epochs, so that more than one of them cannot be divided.
bool Cell::alone_on_both_sides(const CacheState& state) const {
  if (input_.planned_steps() < kAloneBatches) return false;
  if (setup_.cache == CacheRequest::cold) return input_.planned_steps() <= input_.steps_an_epoch();
  return setup_.cache == CacheRequest::warm || state.client_data == "memory" ||
         state.client_data == "bypassed" || state.resident_fraction_before.value_or(0) >= kWarmAtLeast;
}

// One of `parts` samples of the pipeline without an accelerator: that many steps, or as many as fit into its
// share of the time, save for the epochs of a cold cache.
Result<void> Cell::input_alone(std::uint64_t steps, unsigned parts, std::vector<TrainingRun>& alone) {
  const bool all = setup_.cache == CacheRequest::cold && steps > input_.steps_an_epoch();
  const std::uint64_t least = kAloneBatches / parts;
  Progress progress(setup_.progress, std::string(setup_.app->name) + "'s input alone on " + tier_.name, steps,
                    "steps");
  PENSTOCK_ASSIGN(const std::unique_ptr<Accelerator> nothing, make_accelerator("none"));
  PlanLimits limits{.start = setup_.limits.start};
  limits.batches = limits.start.batches + steps;
  PENSTOCK_TRY(ranks_.barrier());
  const SteadyTime start = std::chrono::steady_clock::now();
  const SteadyTime enough = start + kAloneLongest / parts;
  PENSTOCK_ASSIGN(std::unique_ptr<BatchSource> input, start_input(limits));
  alone.push_back(
      run_training(*input, *nothing, start, [&](std::uint64_t step, const Batch&) -> Result<bool> {
        progress.advance(1);
        return all || step + 1 < least || std::chrono::steady_clock::now() < enough;
      }));
  PENSTOCK_TRY(quarantine_copy(std::move(input)));
  if (stuck_ && alone.back().failure) trial_.fail(*alone.back().failure);
  return success();
}

// Of this process so far; of a search, whose runs follow each other in it, what this run read.
Result<void> Cell::report_totals() {
  std::uint64_t read = tier_.backend->moved_bytes().read + cache_.warmed_bytes();
  if (&tier_ == &corpus_.tier) read += corpus_.mapped_bytes;
  if (setup_.find_accelerators) read -= read_before_;
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&read, 1), Reduction::sum));
  trial_.sample(shared_metrics::kTierBytesRead, static_cast<double>(read));
  const auto over_ranks = [&](std::uint64_t bytes) -> Result<std::uint64_t> {
    PENSTOCK_TRY(ranks_.all_reduce(std::span(&bytes, 1), Reduction::sum));
    return bytes;
  };
  PENSTOCK_TRY(record_overlay(tier_, over_ranks, trial_));
  if (setup_.find_accelerators) return success();
  double memory = peak_memory_bytes();
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&memory, 1), Reduction::max));
  trial_.sample(shared_metrics::kPeakMemory, memory);
  return success();
}

// The accelerators of this process, among those of all ranks, ready for its batches.
Result<std::unique_ptr<Accelerator>> Cell::make_accelerators() const {
  const std::uint64_t count = setup_.accelerators;
  PENSTOCK_ASSIGN(
      std::unique_ptr<Accelerator> made,
      make_accelerator(setup_.accelerator, {.seed = setup_.seed,
                                            .count = count,
                                            .first = static_cast<std::uint64_t>(ranks_.rank()) * count,
                                            .in_all = static_cast<std::uint64_t>(ranks_.size()) * count}));
  PENSTOCK_TRY(made->prepare(setup_.treats().layout(), static_cast<std::size_t>(setup_.step_samples())));
  return made;
}

// Ends early where it is stuck.
Result<void> Cell::measure() {
  const Result<std::unique_ptr<Accelerator>> made = make_accelerators();
  PENSTOCK_TRY(agree(ranks_, outcome_of(made)));
  Accelerator& accelerator = **made;
  const std::chrono::nanoseconds step = accelerator.nominal_step();
  describe(step);
  std::optional<SampleLog> log;
  if (!setup_.sample_log.empty()) {
    Result<SampleLog> opened = open_log();
    PENSTOCK_TRY(agree(ranks_, outcome_of(opened)));
    log = *std::move(opened);
  }
  if (!setup_.timeline.empty()) PENSTOCK_TRY(make_timeline());
  PENSTOCK_TRY(agree(ranks_, input_.reserve()));
  PENSTOCK_ASSIGN(CacheOutcome cache, prepare());
  std::vector<TrainingRun> alone;
  const bool with_alone = !setup_.find_accelerators && accelerator.computes();
  const bool both_sides = with_alone && alone_on_both_sides(cache.state);
  if (both_sides) {
    PENSTOCK_TRY(input_alone(input_.planned_steps() / 2, 2, alone));
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
  trial_.cache(cache.state);
  trial_.verdict(cache.verdict, cache.reason);
  PENSTOCK_ASSIGN(const TrainOutcome outcome, train(accelerator, log ? &*log : nullptr));
  report(outcome, cache.state);
  for (const AcceleratorFact& fact : accelerator.facts()) trial_.sample(fact.metric, fact.value);
  if (timeline_) PENSTOCK_TRY(write_timeline());
  if (stuck_) return success();
  if (log) PENSTOCK_TRY(agree(ranks_, log->close()));
  if (with_alone && !outcome.failure && outcome.steps > 0) {
    if (setup_.cache != CacheRequest::asis) PENSTOCK_TRY(prepare());
    const std::uint64_t rest = both_sides ? outcome.steps - outcome.steps / 2 : outcome.steps;
    PENSTOCK_TRY(input_alone(rest, both_sides ? 2 : 1, alone));
    if (stuck_) return success();
    PENSTOCK_TRY(record_input_alone(ranks_, alone, outcome, trial_));
  }
  return report_totals();
}

// A search's record has several runs: what is of one alone is left out.
void Cell::report(const TrainOutcome& outcome, CacheState cache) {
  record_outcome(outcome, setup_, trial_);
  const bool in_memory = tier_.facts.memory || tier_.backend->caps().volatile_memory;
  const std::optional<double> fraction = device_bytes_fraction(outcome.epochs, cache);
  if (fraction && !in_memory && !setup_.app->in_memory && !tier_.backend->caps().network) {
    cache.device_bytes_fraction = fraction;
    trial_.cache(cache);
  }
  if (setup_.find_accelerators) return;
  if (fraction && !in_memory && !setup_.app->in_memory) record_epochs(outcome.epochs, trial_);
  if (outcome.figures.wall_s > 0) trial_.series("payload_bytes", {1.0, outcome.bytes_by_second});
}

}  // namespace

Result<CellEnd> measure_training(const TrainSetup& setup, const Corpus& corpus, const Tier& tier,
                                 BatchPool& pool, Trial& trial) {
  const Result<SampleList> samples = corpus_samples(corpus.manifest);
  PENSTOCK_TRY(agree(*setup.ranks, outcome_of(samples)));
  Cell cell(setup, corpus, *samples, tier, pool, trial);
  const Result<void> measured = cell.measure();
  trial.tier("data", tier);  // with what was called there
  if (setup.checkpoints) trial.tier("checkpoint", *setup.checkpoints);
  if (!cell.stuck()) return measured.ok() ? Result<CellEnd>(CellEnd::done) : measured.error();
  if (!measured.ok()) trial.fail(measured.error());
  if (verdict_exit_code(trial.record().verdict) == 0)
    trial.fail(make_error(Errc::timed_out, "a call into the back end has not come back"));
  return CellEnd::stuck;
}

}  // namespace penstock
