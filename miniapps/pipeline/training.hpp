// The training loop: gets a batch, occupies the accelerator with it and calls the observers, step after step.
// Also calculates the figures of a run from the times of its steps.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/batch_source.hpp"

namespace penstock {

class Trial;

using SteadyTime = std::chrono::steady_clock::time_point;

// The times of one step.
struct Step {
  SteadyTime begin;  // when the accelerator had the batch and had finished the previous step
  // When the step should end: `begin` + nominal time. Equal to `end` for an accelerator without a nominal
  // time.
  SteadyTime deadline;
  SteadyTime end;                    // when the training loop learned that the step had ended
  std::chrono::nanoseconds busy{0};  // time that the accelerators computed; if there are several, their mean
  std::chrono::nanoseconds nominal{0};  // nominal time of this step; 0: the accelerator has none
};

// The device that computes the steps, or an emulation of it. Only the training loop's thread may use it.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  // Nominal time of a step, as the mean over steps; 0: unknown.
  virtual std::chrono::nanoseconds nominal_step() const = 0;
  // Whether its steps take time. If they do, the next batches can be loaded during a step.
  virtual bool computes() const { return nominal_step().count() > 0; }
  // Success if the accelerator can use batches with this layout (Transform::layout). Otherwise
  // invalid_argument, whose text says what to change.
  virtual Result<void> check_layout(std::string_view /*layout*/) const { return success(); }
  // Prepares the accelerator for batches with this layout and number of samples. This may allocate much
  // memory and take some seconds. Call it once, before the first step. Errors: those of check_layout(),
  // exhausted and interrupted.
  virtual Result<void> prepare(std::string_view layout, size_t /*samples*/) { return check_layout(layout); }
  // Computes on `batch` and returns when the step is over. After Ctrl-C it returns Errc::interrupted within
  // 100 ms; the accelerator `cpu` first completes the part of a layer that it is computing.
  virtual Result<Step> step(const Batch& batch) = 0;
  // Adds the accelerator's metrics (accelerator_metrics.hpp) to the record. Call it after the last step.
  virtual void record(Trial& /*trial*/) const {}
  // Tells the accelerator that at time `when` all ranks had ended the step, or observers had ended their
  // work. The next step of the accelerator begins no earlier.
  virtual void set_step_end(SteadyTime when) = 0;
};

// The accelerator "none": ends each step at once.
std::unique_ptr<Accelerator> no_accelerator();

// The times of one step, in nanoseconds since the start of the run.
struct StepTimes {
  uint64_t epoch = 0;
  uint64_t payload_bytes = 0;
  int64_t handed_ns = 0;  // when next() returned its batch
  int64_t begin_ns = 0;   // the value of Step::begin
  int64_t deadline_ns = 0;
  int64_t end_ns = 0;
  int64_t nominal_ns = 0;
  int64_t busy_ns = 0;  // the value of Step::busy
  // When the next step could begin. Without other ranks: at this step's deadline. With other ranks: when all
  // ranks had ended this step.
  int64_t next_may_begin_ns = 0;
  // With several ranks: the two parts of the time from end_ns to next_may_begin_ns.
  int64_t straggler_ns = 0;  // wait for the last rank to arrive; 0: this rank was the last
  int64_t barrier_ns = 0;    // time that the ranks then needed until each knew that all had arrived
  int64_t observer_ns = 0;   // time in observers between the previous step and handed_ns
  // The part of observer_ns that was spent in do_collective_work(), directly after the previous step.
  int64_t collective_ns = 0;
};

struct TrainingRun {
  std::vector<StepTimes> steps;     // the steps that all ranks have ended
  uint64_t batch = 0;               // number of samples in a step
  uint64_t steps_arrived_last = 0;  // number of steps in which this rank was the last to end its step
  int64_t observer_after_ns = 0;    // time in observers after the final step
  std::optional<Error> failure;     // why the run ended early; Errc::interrupted after Ctrl-C
};

// Does work around the steps of a run: progress, logs, validation, checkpoints. The training loop's thread
// makes all calls and holds no lock. If a call returns an error, the run ends, and that error is its
// TrainingRun::failure.
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  // Does work that is not training, such as validation. Called after `steps` steps, when the batch of the
  // next step is ready. Called once more at the end of the input, with null for the batch.
  // Returns true if it did such work. The time for it does not count as part of the next step.
  virtual Result<bool> before_step(uint64_t /*steps*/, const Batch* /*next*/) { return false; }

  // Does work after a step, such as a log. Called when all ranks have ended step number `step`, counting from
  // 0. `batch` is the batch of this rank. Returns false when the run has had enough steps.
  virtual Result<bool> after_step(uint64_t /*step*/, const Batch& /*batch*/) { return true; }

  // do_collective_work() does work that all ranks do together between steps, such as saving a checkpoint.
  // collective_work_due() says whether such work is due after `steps` steps; it must return the same on every
  // rank. If it is due, do_collective_work() is called after after_step() and before the next batch is
  // requested.
  // No rank begins this work before all ranks have ended the step. If a rank has failed since the step, no
  // rank begins it, and the run ends.
  virtual bool collective_work_due(uint64_t /*steps*/) const { return false; }
  virtual Result<void> do_collective_work(uint64_t /*steps*/) { return success(); }
};

// Makes steps until `input` ends, an observer has enough steps or something fails. The result has all
// measurements until then. `start` is time 0 of the run. Take this time before making the input, so that the
// whole wait for the first batch counts. Observers are called in the order of the list.
//
// With `ranks`, all ranks end each step together, as data-parallel training does when it exchanges gradients:
// no rank begins the next step before all have ended this one. All ranks must take `start` after the same
// barrier. If the run ends on one rank, it ends on all. Only the rank that failed has a `failure`.
//
// The last rank of a step is found without comparing the clocks of the ranks. Each rank measures how long it
// took since the previous step had ended on all ranks; the last rank is the one with the longest time. A rank
// may notice the end of the previous step some tenths of a millisecond late, since ranks poll at that
// interval over MPI. So if two ranks end a step within such a time, either may count as the last.
TrainingRun run_training(BatchSource& input, Accelerator& accelerator, SteadyTime start,
                         std::span<StepObserver* const> observers, Communicator* ranks = nullptr);

// The figures of a run. Every second of wall_s is in exactly one of these parts: input_wait_s, the time that
// the accelerators computed, straggler_s, barrier_s or observer_s.
// There is one exception: without other ranks, the overshoot of the final step is in no part.
struct TrainingFigures {
  // Time until the final step has ended (with other ranks: on all of them), plus the work of observers after
  // it.
  double wall_s = 0;
  double first_batch_s = 0;  // time until the accelerator had its first batch
  double input_wait_s = 0;   // time that the accelerator waited for batches, including the first batch
  double straggler_s = 0;    // time that it waited for ranks that ended their steps later
  double barrier_s = 0;      // time that ranks and accelerators synchronised at the end of steps
  double observer_s = 0;     // time in before_step() and do_collective_work()
  double samples = 0;
  double payload_bytes = 0;
  uint64_t steps_arrived_last = 0;  // the same value as in TrainingRun
  // The median over the steps of (end - begin) / nominal - 1. Absent if the steps have no nominal time.
  std::optional<double> step_overshoot;
  // Accelerator utilization (AU): the computing time divided by the training time, both without the first
  // step. The training time is the time from the end of the first step to the end of the final step, minus
  // observer_s in between. If all steps take the same time, the computing time is (steps - 1) * nominal.
  // Absent with fewer than two steps, or if nothing computed.
  std::optional<double> utilization;
  // AU as DLIO calculates it (compute_metrics_train in its utils/statscounter.py): the mean over the epochs
  // of the run, each of which is one of DLIO's blocks. The AU of an epoch is computing time / time to load
  // and compute, both of its steps without the excluded ones; time in observers does not count. Epochs
  // without such steps have no AU and are left out. Absent if no epoch has one.
  std::optional<double> utilization_dlio;
};

// Steps at the start and at the end of each epoch that do not count in TrainingFigures::utilization_dlio.
// The defaults are DLIO's.
struct ExcludedSteps {
  uint64_t first = 1;
  uint64_t last = 0;
};
TrainingFigures figures(const TrainingRun& run, std::chrono::nanoseconds nominal_step,
                        const ExcludedSteps& excluded = {});

// The share of `input_alone_s`, the time that the input needs alone, that was hidden behind the accelerator's
// work: 1 - input_wait_s / input_alone_s. 1: the whole time was hidden. 0: nothing was hidden.
double input_overlap(double input_wait_s, double input_alone_s);

// The wall time that an input pipeline takes for `steps` batches without an accelerator. It is calculated
// from the run `alone`, which may have fewer steps: the time of its first batch, plus the mean time of its
// other batches for each further batch. `alone` must have at least two steps, unless `steps` is 1.
double input_alone_s(const TrainingRun& alone, uint64_t steps);

}  // namespace penstock
