// What happens at the steps of a training besides the steps: progress, validation, checkpoints, the sample
// log, the timeline. Makes the list of observers, and adds what they came to to the record.
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
  Result<bool> after_step(std::uint64_t step, const Batch& batch) override;

 private:
  Progress progress_;
  const bool profiled_;
  std::uint64_t enough_steps_ = 0;
  SteadyTime enough_ = SteadyTime::max();
};

// The sums of all ranks, for the epochs that each has; none where one of them does not count. Collective.
Result<std::vector<EpochBytes>> joined(Communicator& ranks, std::vector<EpochBytes> mine);

// One training on one tier. One thread; the calls are in this order, and those that return a Result are
// collective.
class TrainObservers {
 public:
  // Borrows all of it, the cache for the record. `saves` is what --checkpoint-every asks for, else null.
  TrainObservers(const TrainPlan& plan, const Tier& tier, const TrainCache& cache, StepCheckpoints* saves)
      : plan_(plan), tier_(tier), cache_(cache), saves_(saves) {}

  // Makes the files of the log and of the timeline.
  Result<void> open();
  // Makes the observers. `nominal_step` is the accelerator's.
  Result<void> make(std::chrono::nanoseconds nominal_step);
  std::span<StepObserver* const> list() const { return list_; }
  SpanLog* spans() { return timeline_ ? &timeline_->log() : profiled_.get(); }  // the workers', or null
  void start(SteadyTime start);                                                 // the run's time 0
  // Adds what is lost to the outcome of this rank, before the workers are stopped.
  void count(TrainOutcome& mine);
  // As BatchSource::close() and stalled(), also before make(). The steps are over.
  bool close(std::chrono::nanoseconds patience);
  bool stalled() const { return validating_ && validating_->stalled(); }
  // Waits until what was saved is durable; that it is not is a failure in the outcome of this rank.
  Result<void> end(const TrainingRun& run, SteadyTime start, TrainOutcome& mine, Trial& trial);
  // The figures of all ranks, of which `outcome` is.
  Result<void> record(const TrainOutcome& outcome, Trial& trial) const;
  Result<void> write_timeline() { return timeline_ ? timeline_->write() : success(); }
  Result<void> close_log();

  // Instead of the destructor's work where a worker hangs: it may go on to use what is here.
  void abandon();

 private:
  std::string of_this_tier(const std::string& path, std::size_t before) const;
  Result<SampleLog> open_log() const;

  const TrainPlan& plan_;
  const Tier& tier_;
  const TrainCache& cache_;
  StepCheckpoints* const saves_;
  std::optional<StepCounter> steps_;
  std::optional<EpochCounter> epochs_;
  std::optional<SampleLog> log_;
  std::unique_ptr<Validating> validating_;
  std::unique_ptr<EpochCheckpoints> checkpoints_;
  std::unique_ptr<Timeline> timeline_;  // with --timeline
  std::unique_ptr<SpanLog> profiled_;   // without, but under the profiler: it keeps nothing itself
  std::vector<StepObserver*> list_;
  // Of this rank.
  ValidationFigures validation_;
  std::vector<EpochBytes> epoch_bytes_;
  TimelineFigures timeline_figures_;
};

}  // namespace penstock
