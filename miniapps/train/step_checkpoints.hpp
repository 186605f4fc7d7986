// Saves the state of a training every N steps, between two steps, through a Checkpointer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/drain_progress.hpp"
#include "miniapps/checkpoint/payload.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/step_saving.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// The checkpoints of one rank. Only the training loop's thread uses it. When a save is done, its line is
// written to the --ack-log first. Only then is the save reported anywhere else.
class StepCheckpoints final : public StepObserver {
 public:
  // Opens the checkpoints of a run. `steps_before` is the number of steps that earlier processes of the run
  // made, and `end_state` is the state in which they ended. Borrows `saving` and `ranks`. The errors are
  // those of Checkpointer::open(), and `exhausted` if there is no memory for the payload. Collective.
  static Result<std::unique_ptr<StepCheckpoints>> open(const StepSaving& saving, uint64_t steps_before,
                                                       const TrainerState& end_state, Communicator& ranks);

  Result<bool> after_step(uint64_t step, const Batch& batch) override;
  bool collective_work_due(uint64_t steps) const override {
    return (steps_before_ + steps) % saving_.every_steps == 0;
  }
  // Saves the state after the step that has just ended, while the training waits. Collective: every rank
  // calls it after that step.
  Result<void> do_collective_work(uint64_t steps) override;

  // Waits, when the training has ended, until every save is durable on the slow tier. After a signal it waits
  // for at most --grace.
  // The error is timed_out if a save is not durable when --grace ends, or if the slow tier receives no bytes
  // for CheckpointPolicy::block_for. The next process of the run can then continue the drain. Collective.
  Result<void> drain();
  // Waits as drain() does; called at the end of the process. If a save is not durable when --grace ends, that
  // is only a warning (CheckpointPolicy::log) and no error. The save is kept on the fast tier.
  Result<void> drain_or_leave();

  // Adds metrics on rank 0 and parameters on all ranks. `start` is time 0 of the run. `steps_are_work` is
  // false if the accelerator only sleeps during steps: then the times of steps do not show what the saves
  // cost.
  void record(const TrainingRun& run, SteadyTime start, bool steps_are_work, Trial& trial) const;

 private:
  StepCheckpoints(const StepSaving& saving, uint64_t steps_before, const TrainerState& end_state,
                  Communicator& ranks);
  Result<void> may_wait(DrainProgress& progress, const Result<void>& last_result);

  const StepSaving& saving_;
  Communicator& ranks_;
  const uint64_t steps_before_;
  TrainerState trainer_state_;
  std::unique_ptr<PayloadState> state_;
  std::unique_ptr<Checkpointer> saver_;
  double drain_time_s_ = 0;  // how long drain() took

  // Used by drain() on rank 0.
  std::optional<SteadyTime> signal_seen_at_;  // when drain() first saw a signal
};

}  // namespace penstock
