#include "miniapps/train/train_observers.hpp"

#include <utility>

#include "io_backends/core/ranks/collectives.hpp"
#include "miniapps/train/train_team.hpp"
#include "profiling/interpose/penstock_profile.h"

namespace penstock {
Result<bool> StepCounter::after_step(uint64_t step, const Batch& batch) {
  progress_.advance(1);
  if (activity_ != nullptr) {
    activity_->repeat = step + 1;
    activity_->operations += batch.samples();
  }
  // Tells the profiler only that a step has ended. The spans of all steps follow at the end of the run, from
  // profile_steps().
  if (activity_ != nullptr && penstock_profile_step != nullptr) penstock_profile_step();
  return end_steps_ == 0 || step + 1 < end_steps_ || std::chrono::steady_clock::now() < end_time_;
}

// Returns the path of an output file, such as the sample log, that exists once for each measured tier. For
// the corpus's own tier this is `path`. For any other tier, the tier's name is inserted into `path` at
// `position`.
std::string TrainObservers::path_of_tier(const std::string& path, size_t position) const {
  if (&tier_ == &plan_.corpus.tier) return path;
  return path.substr(0, position) + "." + tier_.name + path.substr(position);
}

Result<SampleLog> TrainObservers::open_log() const {
  const Communicator& ranks = *plan_.ranks;
  const std::string path = path_of_tier(plan_.sample_log, plan_.sample_log.size());
  if (!plan_.saving || !plan_.saving->resumed) return SampleLog::open(path, ranks.rank(), ranks.size());
  return SampleLog::continue_log(path, ranks.rank(), ranks.size(), plan_.limits.start.batches,
                                 int(plan_.saving->resumed->manifest.ranks));
}

Result<void> TrainObservers::open() {
  if (!plan_.sample_log.empty()) {
    Result<SampleLog> opened = open_log();
    PENSTOCK_TRY(all_ok(*plan_.ranks, opened));
    sample_log_ = *std::move(opened);
  }
  if (plan_.timeline.empty()) return success();
  const auto stages = plan_.transform().stages;
  PENSTOCK_ASSIGN(timeline_, Timeline::make({.path = path_of_tier(plan_.timeline, plan_.timeline.rfind('.')),
                                             .memory_bytes = plan_.timeline_memory_bytes,
                                             .threads = unsigned(plan_.threads),
                                             .stages = {stages.begin(), stages.end()},
                                             .samples = plan_.planned_loads(),
                                             .epochs = plan_.planned_steps() / plan_.steps_an_epoch() + 2,
                                             .manifest = &plan_.corpus.manifest,
                                             .shuffle = plan_.shuffle},
                                            *plan_.ranks));
  return success();
}

Result<void> TrainObservers::make(std::chrono::nanoseconds nominal_step) {
  Communicator& ranks = *plan_.ranks;
  const std::string accelerators =
      plan_.accelerators == 1 ? "" : ", " + std::to_string(plan_.accelerators) + " accelerators";
  step_counter_.emplace(plan_.progress, std::string(plan_.app->name) + " on " + tier_.name + accelerators,
                        plan_.planned_steps(), tier_.activity.get());
  Result<std::unique_ptr<Validating>> validating = make_validating(plan_, tier_, nominal_step);
  PENSTOCK_TRY(all_ok(ranks, validating));
  validating_ = *std::move(validating);
  // If validation reads from another tier, its bytes do not count in the epochs of this tier.
  const bool counts_validation = plan_.files() == nullptr || plan_.files()->validation_backend == nullptr;
  epoch_counter_.emplace(tier_, counts_validation ? validating_.get() : nullptr);
  Result<std::unique_ptr<EpochCheckpoints>> checkpoints = make_epoch_checkpoints(plan_);
  PENSTOCK_TRY(all_ok(ranks, checkpoints));
  epoch_checkpoints_ = *std::move(checkpoints);
  epoch_saves_s_.clear();
  SampleLog* const log = sample_log_ ? &*sample_log_ : nullptr;
  if (log != nullptr && step_checkpoints_ != nullptr) log->flush_before(*step_checkpoints_);
  // The order matters. Validation comes before checkpoints, since its result decides what a program saves.
  // The log flushes its lines before a step checkpoint saves their samples as used: the log does so in
  // after_step(), and step checkpoints save later, in do_collective_work().
  observers_ = {validating_.get(),       &*step_counter_, &*epoch_counter_, step_checkpoints_, log,
                epoch_checkpoints_.get()};
  std::erase(observers_, nullptr);
  Result<std::unique_ptr<SpanLog>> profiler_spans = std::unique_ptr<SpanLog>();
  if (!timeline_ && spans_are_profiled())
    profiler_spans = SpanLog::make(std::vector<size_t>(size_t(plan_.threads) + 1));
  PENSTOCK_TRY(all_ok(ranks, profiler_spans));  // every rank makes this call, also without profiler
  profiler_spans_ = *std::move(profiler_spans);
  return success();
}

void TrainObservers::start(SteadyTime start) {
  if (plan_.enough_steps != 0) step_counter_->end_after(plan_.enough_steps, start + plan_.enough_time);
}

// Validation's bad samples count as losses of the run. Its good samples that fill no batch of a pass
// (dropped_tail) do not.
void TrainObservers::count_losses(TrainOutcome& mine) {
  epoch_bytes_ = epoch_counter_->finish();
  if (!validating_) return;
  validation_figures_ = validating_->figures();
  LoaderLosses losses = validating_->losses();
  losses.dropped_tail = 0;
  mine.losses.add(losses);
}

bool TrainObservers::close(std::chrono::nanoseconds patience) {
  if (validating_ && !validating_->close(patience)) return false;
  validating_.reset();  // frees the memory of validation before the work that follows
  return true;
}

Result<void> TrainObservers::end(const TrainingRun& run, SteadyTime start, TrainOutcome& mine, Trial& trial) {
  const penstock_component before_step =
      epoch_checkpoints_ || step_checkpoints_ != nullptr ? PENSTOCK_CHECKPOINT : PENSTOCK_VALIDATION;
  if (timeline_) timeline_figures_ = timeline_->end(run, start, before_step);
  profile_steps(run, start, before_step);
  if (step_checkpoints_ != nullptr) {
    const Result<void> drained = step_checkpoints_->drain_or_leave();
    step_checkpoints_->record(run, start, plan_.steps_are_work(), trial);
    if (!drained.ok() && !mine.failure) mine.failure = drained.error();
  }
  observers_.clear();
  step_counter_.reset();  // the run of the input alone makes its own progress line
  if (epoch_checkpoints_) epoch_saves_s_ = epoch_checkpoints_->seconds();
  epoch_checkpoints_.reset();  // frees the model's memory before the input alone is measured
  return all_ok(*plan_.ranks, sample_log_ ? sample_log_->outcome() : success());
}

Result<void> TrainObservers::record(const TrainOutcome& outcome, Trial& trial) const {
  Communicator& ranks = *plan_.ranks;
  if (plan_.files() != nullptr) {
    PENSTOCK_ASSIGN(const ValidationFigures validation, joined(ranks, validation_figures_));
    record_files(plan_, outcome, validation, trial);
  }
  if (plan_.checkpoint_tier) {  // all ranks need the number of saves, but only rank 0 has it
    std::vector<double> seconds = epoch_saves_s_;
    uint64_t count = seconds.size();
    PENSTOCK_TRY(ranks.all_reduce(std::span(&count, 1), Reduction::max));
    seconds.resize(size_t(count));
    if (count > 0) PENSTOCK_TRY(ranks.all_reduce(std::span(seconds), Reduction::max));
    record_epoch_checkpoints(plan_, seconds, trial);
  }
  if (timeline_) {
    PENSTOCK_ASSIGN(const TimelineFigures figures, joined(ranks, timeline_figures_));
    record_timeline(figures, plan_, trial);
  }
  PENSTOCK_ASSIGN(const std::vector<EpochBytes> epochs, joined(ranks, epoch_bytes_));
  cache_.record_epochs(epochs, trial);
  return success();
}

Result<void> TrainObservers::close_log() {
  return sample_log_ ? all_ok(*plan_.ranks, sample_log_->close()) : success();
}

std::span<StepObserver* const> TrainObservers::make_alone(uint64_t steps, uint64_t least_steps,
                                                          SteadyTime end_time) {
  step_counter_.emplace(plan_.progress, std::string(plan_.app->name) + "'s input alone on " + tier_.name,
                        steps, nullptr);
  step_counter_->end_after(least_steps, end_time);
  observers_ = {&*step_counter_};
  return observers_;
}

void TrainObservers::end_alone() {
  observers_.clear();
  step_counter_.reset();
}

void TrainObservers::abandon() {
  static_cast<void>(validating_.release());
  static_cast<void>(timeline_.release());
  static_cast<void>(profiler_spans_.release());
}

}  // namespace penstock
