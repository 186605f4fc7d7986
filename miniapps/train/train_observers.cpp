#include "miniapps/train/train_observers.hpp"

#include <utility>

#include "io_backends/core/ranks/collectives.hpp"
#include "miniapps/train/train_team.hpp"
#include "profiling/interpose/penstock_profile.h"

namespace penstock {
Result<bool> StepCounter::after_step(std::uint64_t step, const Batch& /*batch*/) {
  progress_.advance(1);
  // Only marks the step. profile_steps() gives its spans at the end.
  if (profiled_ && penstock_profile_step != nullptr) penstock_profile_step();
  return enough_steps_ == 0 || step + 1 < enough_steps_ || std::chrono::steady_clock::now() < enough_;
}

// Inserts the tier's name into `path` at position `before`, except for the corpus's own tier.
std::string TrainObservers::of_this_tier(const std::string& path, std::size_t before) const {
  if (&tier_ == &plan_.corpus.tier) return path;
  return path.substr(0, before) + "." + tier_.name + path.substr(before);
}

Result<SampleLog> TrainObservers::open_log() const {
  const Communicator& ranks = *plan_.ranks;
  const std::string path = of_this_tier(plan_.sample_log, plan_.sample_log.size());
  if (!plan_.saving || !plan_.saving->resumed) return SampleLog::open(path, ranks.rank(), ranks.size());
  return SampleLog::go_on(path, ranks.rank(), ranks.size(), plan_.limits.start.batches,
                          static_cast<int>(plan_.saving->resumed->manifest.ranks));
}

Result<void> TrainObservers::open() {
  if (!plan_.sample_log.empty()) {
    Result<SampleLog> opened = open_log();
    PENSTOCK_TRY(all_ok(*plan_.ranks, opened));
    log_ = *std::move(opened);
  }
  if (plan_.timeline.empty()) return success();
  const auto stages = plan_.transform().stages;
  PENSTOCK_ASSIGN(timeline_, Timeline::make({.path = of_this_tier(plan_.timeline, plan_.timeline.rfind('.')),
                                             .memory = plan_.timeline_memory_bytes,
                                             .threads = static_cast<unsigned>(plan_.threads),
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
  const std::string many =
      plan_.accelerators == 1 ? "" : ", " + std::to_string(plan_.accelerators) + " accelerators";
  steps_.emplace(plan_.progress, std::string(plan_.app->name) + " on " + tier_.name + many,
                 plan_.planned_steps(), true);
  Result<std::unique_ptr<Validating>> validating = make_validating(plan_, tier_, nominal_step);
  PENSTOCK_TRY(all_ok(ranks, validating));
  validating_ = *std::move(validating);
  // Bytes of a validation from another tier do not count in the epochs of this tier.
  const bool counted = plan_.files() == nullptr || plan_.files()->validation_backend == nullptr;
  epochs_.emplace(tier_, counted ? validating_.get() : nullptr);
  Result<std::unique_ptr<EpochCheckpoints>> checkpoints = make_epoch_checkpoints(plan_);
  PENSTOCK_TRY(all_ok(ranks, checkpoints));
  checkpoints_ = *std::move(checkpoints);
  epoch_saves_s_.clear();
  SampleLog* const log = log_ ? &*log_ : nullptr;
  if (log != nullptr && saves_ != nullptr) log->flush_before(*saves_);
  // The order matters. Checkpoints come after validation, which decides what to save. The log is flushed
  // before step checkpoints save in do_collective_work().
  list_ = {validating_.get(), &*steps_, &*epochs_, saves_, log, checkpoints_.get()};
  std::erase(list_, nullptr);
  Result<std::unique_ptr<SpanLog>> profiled = std::unique_ptr<SpanLog>();
  if (!timeline_ && spans_are_profiled())
    profiled = SpanLog::make(std::vector<std::size_t>(static_cast<std::size_t>(plan_.threads) + 1));
  PENSTOCK_TRY(all_ok(ranks, profiled));  // some ranks may run without the profiler
  profiled_ = *std::move(profiled);
  return success();
}

void TrainObservers::start(SteadyTime start) {
  if (plan_.enough_steps != 0) steps_->end_after(plan_.enough_steps, start + plan_.enough_time);
}

// Samples that fill no batch of a validation pass (dropped_tail) are not counted as lost by the training;
// skipped ones are.
void TrainObservers::count(TrainOutcome& mine) {
  epoch_bytes_ = epochs_->finish();
  if (!validating_) return;
  validation_ = validating_->figures();
  LoaderLosses losses = validating_->losses();
  losses.dropped_tail = 0;
  mine.losses.add(losses);
}

bool TrainObservers::close(std::chrono::nanoseconds patience) {
  if (validating_ && !validating_->close(patience)) return false;
  validating_.reset();  // frees its memory for the work after the training
  return true;
}

Result<void> TrainObservers::end(const TrainingRun& run, SteadyTime start, TrainOutcome& mine, Trial& trial) {
  const penstock_component before_step =
      checkpoints_ || saves_ != nullptr ? PENSTOCK_CHECKPOINT : PENSTOCK_VALIDATION;
  if (timeline_) timeline_figures_ = timeline_->end(run, start, before_step);
  profile_steps(run, start, before_step);
  if (saves_ != nullptr) {
    const Result<void> drained = saves_->drain_or_leave();
    saves_->record(run, start, plan_.steps_are_work(), trial);
    if (!drained.ok() && !mine.failure) mine.failure = drained.error();
  }
  list_.clear();
  steps_.reset();  // the input alone has its own progress line
  if (checkpoints_) epoch_saves_s_ = checkpoints_->seconds();
  checkpoints_.reset();  // frees the model's memory before the input alone is measured
  return all_ok(*plan_.ranks, log_ ? log_->outcome() : success());
}

Result<void> TrainObservers::record(const TrainOutcome& outcome, Trial& trial) const {
  Communicator& ranks = *plan_.ranks;
  if (plan_.files() != nullptr) {
    PENSTOCK_ASSIGN(const ValidationFigures validation, joined(ranks, validation_));
    record_files(plan_, outcome, validation, trial);
  }
  if (plan_.checkpoints) {  // made by rank 0
    std::vector<double> seconds = epoch_saves_s_;
    std::uint64_t count = seconds.size();
    PENSTOCK_TRY(ranks.all_reduce(std::span(&count, 1), Reduction::max));
    seconds.resize(static_cast<std::size_t>(count));
    if (count > 0) PENSTOCK_TRY(ranks.all_reduce(std::span(seconds), Reduction::max));
    record_epoch_checkpoints(plan_, seconds, trial);
  }
  if (timeline_) {
    PENSTOCK_ASSIGN(const TimelineFigures figures, joined(ranks, timeline_figures_));
    record_timeline(figures, plan_.timeline_memory_bytes, trial);
  }
  PENSTOCK_ASSIGN(const std::vector<EpochBytes> epochs, joined(ranks, epoch_bytes_));
  cache_.record_epochs(epochs, trial);
  return success();
}

Result<void> TrainObservers::close_log() {
  return log_ ? all_ok(*plan_.ranks, log_->close()) : success();
}

std::span<StepObserver* const> TrainObservers::make_alone(std::uint64_t steps, std::uint64_t least,
                                                          SteadyTime longest) {
  steps_.emplace(plan_.progress, std::string(plan_.app->name) + "'s input alone on " + tier_.name, steps,
                 false);
  steps_->end_after(least, longest);
  list_ = {&*steps_};
  return list_;
}

void TrainObservers::end_alone() {
  list_.clear();
  steps_.reset();
}

void TrainObservers::abandon() {
  static_cast<void>(validating_.release());
  static_cast<void>(timeline_.release());
  static_cast<void>(profiled_.release());
}

}  // namespace penstock
