// Makes the observers of a training (progress, validation, checkpoints, the sample log, the timeline) and
// adds their figures to the record.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/epoch_checkpoints.hpp"
#include "miniapps/train/sample_log.hpp"
#include "miniapps/train/step_checkpoints.hpp"
#include "miniapps/train/timeline.hpp"
#include "miniapps/train/train_cache.hpp"
#include "miniapps/train/train_outcome.hpp"
#include "miniapps/train/train_plan.hpp"
#include "miniapps/train/validating.hpp"
#include "profiling/spans/span_log.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// Counts the steps for the progress line, and steps and samples for the tier's activity. Can end a run before
// its limits, after a time (end_after()).
class StepCounter final : public StepObserver {
 public:
  // `activity` is null for a run that is not the measured one.
  StepCounter(bool shown, const std::string& what, uint64_t steps, TierActivity* activity)
      : progress_(shown, what, steps, "steps"), activity_(activity) {}

  // Makes the run end as soon as two things are true: it has made `steps` steps, and the clock has reached
  // `time`. Without this call the run goes on to its limits.
  void end_after(uint64_t steps, SteadyTime time) {
    end_steps_ = steps;
    end_time_ = time;
  }
  Result<bool> after_step(uint64_t step, const Batch& batch) override;

 private:
  Progress progress_;
  TierActivity* const activity_;
  uint64_t end_steps_ = 0;
  SteadyTime end_time_ = SteadyTime::max();
};

// The observers of one training on one tier. Only one thread uses it. Call the functions in the order in
// which they are declared, except make_alone(), end_alone() and abandon(). Those that return a Result are
// collective.
class TrainObservers {
 public:
  // Borrows all arguments. record() uses the state of the cache.
  TrainObservers(const TrainPlan& plan, const Tier& tier, const TrainCache& cache)
      : plan_(plan),
        tier_(tier),
        cache_(cache),
        step_checkpoints_(plan.saving ? plan.saving->checkpoints.get() : nullptr) {}

  // Creates the files of the sample log and of the timeline.
  Result<void> open();
  // Makes the observers. `nominal_step` is the nominal time of the accelerator's steps.
  Result<void> make(std::chrono::nanoseconds nominal_step);
  std::span<StepObserver* const> list() const { return observers_; }
  // The buffers into which the workers record their spans; null if they record none.
  SpanLog* spans() { return timeline_ ? &timeline_->log() : profiler_spans_.get(); }
  void start(SteadyTime start);  // `start` is time 0 of the run
  // Adds the samples that validation skipped to the losses in `mine`, the outcome of this rank. Also stores
  // the counts that record() needs. Call it before the workers are stopped.
  void count_losses(TrainOutcome& mine);
  // close() waits for at most `patience` until the workers of validation have ended. It returns false if they
  // have not. stalled() is true if no sample of the validation came for too long.
  // Call these two functions when all steps are made. They are also allowed before make().
  bool close(std::chrono::nanoseconds patience);
  bool stalled() const { return validating_ && validating_->stalled(); }
  // Ends the observers, and waits until all saves are durable. If a save does not become durable, that
  // becomes the failure of `mine`, the outcome of this rank, if it has none yet. After a signal, a wait that
  // lasts too long is only a warning.
  Result<void> end(const TrainingRun& run, SteadyTime start, TrainOutcome& mine, Trial& trial);
  // Adds the figures of the observers to the trial. `outcome` is the joined outcome of all ranks.
  Result<void> record(const TrainOutcome& outcome, Trial& trial) const;
  Result<void> write_timeline() { return timeline_ ? timeline_->write() : success(); }
  Result<void> close_log();

  // Makes the observers for a run of the input without an accelerator: only a progress line. The run ends
  // once it has made `least_steps` steps and the clock has reached `end_time`, at the latest after `steps`
  // steps. Call it before make() or after end(), and call end_alone() after the run. Not collective.
  std::span<StepObserver* const> make_alone(uint64_t steps, uint64_t least_steps, SteadyTime end_time);
  void end_alone();

  // Leaks the observers. Call it instead of the destructor if a worker hangs: that worker may still use them.
  void abandon();

 private:
  std::string path_of_tier(const std::string& path, size_t position) const;
  Result<SampleLog> open_log() const;

  const TrainPlan& plan_;
  const Tier& tier_;
  const TrainCache& cache_;
  StepCheckpoints* const step_checkpoints_;  // null without --checkpoint-every
  std::optional<StepCounter> step_counter_;
  std::optional<EpochCounter> epoch_counter_;
  std::optional<SampleLog> sample_log_;
  std::unique_ptr<Validating> validating_;
  std::unique_ptr<EpochCheckpoints> epoch_checkpoints_;
  std::vector<double> epoch_saves_s_;   // set by end(): the save times of epoch_checkpoints_
  std::unique_ptr<Timeline> timeline_;  // null without --timeline
  // Used under the profiler if there is no --timeline: it forwards the spans to the profiler and stores none.
  std::unique_ptr<SpanLog> profiler_spans_;
  std::vector<StepObserver*> observers_;
  // The figures of this rank alone.
  ValidationFigures validation_figures_;
  std::vector<EpochBytes> epoch_bytes_;
  TimelineFigures timeline_figures_;
};

}  // namespace penstock
