// Saves the state of a training every N steps, between two steps, through the Checkpointer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/payload.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/step_saving.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// The checkpoints of one rank, for the training loop's thread alone. A save is on the --ack-log before it is
// acknowledged anywhere else.
class StepCheckpoints final : public StepObserver {
 public:
  // Collective. Borrows `saving` and `ranks`. `made`: steps that the run made before this process; they ended
  // in state `at`. The errors are those of Checkpointer::open(); exhausted if there is no memory for the
  // payload.
  static Result<std::unique_ptr<StepCheckpoints>> open(const StepSaving& saving, uint64_t made,
                                                       const TrainerState& at, Communicator& ranks);

  Result<bool> after_step(uint64_t step, const Batch& batch) override;
  bool collective_work_due(uint64_t steps) const override {
    return (steps_before_ + steps) % saving_.every_steps == 0;
  }
  // Collective: every rank has ended the step and calls it. Saves the state after the last step, while the
  // training waits.
  Result<void> do_collective_work(uint64_t steps) override;

  // Collective, after the last step. Returns when every save is durable. After a signal it waits for at most
  // --grace. timed_out if a save is not durable by then, or if the slow tier receives no bytes for as long as
  // a save would wait. The next process of the run continues the drain.
  Result<void> drain();
  // Like drain(), at the end of the process. A save that is not durable when --grace ends is only a warning
  // (CheckpointPolicy::log), not a failure. It stays on the fast tier.
  Result<void> drain_or_leave();

  // Adds metrics on rank 0 and parameters on all ranks. `start` as in run_training(), `steps_are_work` as in
  // SavingFacts.
  void record(const TrainingRun& run, SteadyTime start, bool steps_are_work, Trial& trial) const;

 private:
  StepCheckpoints(const StepSaving& saving, uint64_t made, const TrainerState& at, Communicator& ranks);
  Result<void> may_wait(const Result<void>& last_result);

  const StepSaving& saving_;
  Communicator& ranks_;
  const uint64_t steps_before_;
  TrainerState trainer_state_;
  std::unique_ptr<PayloadState> state_;
  std::unique_ptr<Checkpointer> saver_;
  double drain_time_s_ = 0;  // how long drain() took

  // State of drain(), on rank 0.
  std::optional<SteadyTime> signal_seen_at_;  // when a signal was seen
  SteadyTime last_progress_;                  // when the drain last made progress, see may_wait()
  uint64_t written_bytes_ = 0;   // bytes written to the slow tier, at the last call of may_wait()
  uint64_t drained_count_ = 0;   // drained checkpoints, at the last call of may_wait()
  uint64_t drain_failures_ = 0;  // failed drains, at the last drained checkpoint
};

}  // namespace penstock
