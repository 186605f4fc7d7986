// Saves the state of a training every N steps, between two of them, through the Checkpointer.
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

// Of one rank; one thread. What is acknowledged is on the --ack-log before anybody else hears of it.
class StepCheckpoints final : public StepObserver {
 public:
  // Collective; borrows both. `made`: steps that the run has made before, which ended at `at`. Errors as
  // Checkpointer::open(); exhausted where there is no memory for the payload.
  static Result<std::unique_ptr<StepCheckpoints>> open(const StepSaving& saving, std::uint64_t made,
                                                       const TrainerState& at, Communicator& ranks);

  Result<bool> after_step(std::uint64_t step, const Batch& batch) override;
  bool due(std::uint64_t steps) const override { return (made_ + steps) % saving_.every == 0; }
  // Collective: saves the state behind the last step.
  Result<void> hold(std::uint64_t steps) override;

  // Collective, when the training is over: returns when all that was saved is durable. After a signal, in
  // --grace at most. timed_out where it is not durable by then, or where nothing has moved on the slow tier
  // for as long as a save would wait; the next one goes on with it.
  Result<void> drain();
  // As drain(), for what ends then: what is not durable when a signal's --grace is over is warned of, and no
  // failure. It stays on the fast tier.
  Result<void> drain_or_leave();

  // Rank 0's metrics, and on all what was asked for. `start`: as for run_training().
  // `steps_are_work`: as in SavingFacts.
  void record(const TrainingRun& run, SteadyTime start, bool steps_are_work, Trial& trial) const;

 private:
  StepCheckpoints(const StepSaving& saving, std::uint64_t made, const TrainerState& at, Communicator& ranks);
  Result<void> may_wait(const Result<void>& left);

  const StepSaving& saving_;
  Communicator& ranks_;
  const std::uint64_t made_;
  TrainerState at_;
  std::unique_ptr<TrainedState> state_;
  std::unique_ptr<Checkpointer> saver_;
  double drained_s_ = 0;  // how long drain() took

  // Of drain(), rank 0's.
  std::optional<SteadyTime> stopped_;  // a signal was seen
  SteadyTime moved_;                   // when the slow tier was last seen to get bytes, and
  std::uint64_t written_ = 0;          // how many it had then
  std::uint64_t drained_ = 0;          // checkpoints, and
  std::uint64_t failures_ = 0;         // how many drains had failed by the last of them
};

}  // namespace penstock
