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
  SteadyTime end;                    // when the caller learned that the step had ended
  std::chrono::nanoseconds busy{0};  // time that the accelerators computed; if there are several, their mean
  std::chrono::nanoseconds nominal{0};  // nominal time of this step; 0: the accelerator has none
};

// The device that computes the steps, or an emulation of it. Only the training loop's thread may use it.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  // Nominal time of a step, as the mean over steps; 0: unknown.
  virtual std::chrono::nanoseconds nominal_step() const = 0;
  // Whether its steps take time. If they do, input can be loaded during a step.
  virtual bool computes() const { return nominal_step().count() > 0; }
  // Success if the accelerator can use batches with this layout (Transform::layout). Otherwise
  // invalid_argument with the remedy.
  virtual Result<void> check_layout(std::string_view /*layout*/) const { return success(); }
  // Prepares the accelerator for batches with this layout and number of samples; it may need memory and
  // seconds. Call it once, before the first step. Errors: those of check_layout(), exhausted and interrupted.
  virtual Result<void> prepare(std::string_view layout, size_t /*samples*/) { return check_layout(layout); }
  // Computes on `batch` and returns when the step is over. Errc::interrupted within 100 ms once
  // interrupted(); the accelerator `cpu` first ends its current part of a layer.
  virtual Result<Step> step(const Batch& batch) = 0;
  // Adds the accelerator's metrics (accelerator_metrics.hpp) to the record. Call it after the last step.
  virtual void record(Trial& /*trial*/) const {}
  // Tells the accelerator that all ranks had ended the step at time `when`. Its next step begins no earlier.
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
  // When the next step could begin: at this step's deadline, or, with several ranks, when all had ended it.
  int64_t next_may_begin_ns = 0;
  // With several ranks: the two parts of the time from end_ns to next_may_begin_ns.
  int64_t straggler_ns = 0;  // wait for the last rank to arrive; 0: this rank was the last
  int64_t barrier_ns = 0;    // time that the ranks then needed until each knew that all had arrived
  int64_t observer_ns = 0;   // time in observers after the previous step, up to handed_ns
  // The part of observer_ns that was spent in do_collective_work(), directly after the previous step.
  int64_t collective_ns = 0;
};

struct TrainingRun {
  std::vector<StepTimes> steps;     // the steps that all ranks have ended
  uint64_t batch = 0;               // number of samples in a step
  uint64_t steps_arrived_last = 0;  // steps that this rank ended later than all other ranks
  int64_t observer_after_ns = 0;    // time in observers after the last step
  std::optional<Error> failure;     // why the run ended early; Errc::interrupted after Ctrl-C
};

// Does work around the steps of a run: progress, logs, validation, checkpoints. The training loop's thread
// makes all calls and holds no lock. If a call returns an error, the run ends with it as its failure.
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  // Does work that is not training, such as validation. Called when `steps` steps are made and the batch of
  // the next step is ready. Called once more with null at the end of the input. Returns true if it did such
  // work; its time does not count as part of the next step.
  virtual Result<bool> before_step(uint64_t /*steps*/, const Batch* /*next*/) { return false; }

  // Does work after a step, such as a log. Called after all ranks have made step number `step`, counting from
  // 0, with the batch of this rank. Returns false when the run has made enough steps.
  virtual Result<bool> after_step(uint64_t /*step*/, const Batch& /*batch*/) { return true; }

  // Work that all ranks do together between steps, such as saving a checkpoint. collective_work_due() returns
  // the same on every rank. If it is true, do_collective_work() is called after after_step() and before the
  // next batch is requested. No rank calls do_collective_work() before all ranks have arrived there. If one
  // rank has failed since the step, the run ends instead.
  virtual bool collective_work_due(uint64_t /*steps*/) const { return false; }
  virtual Result<void> do_collective_work(uint64_t /*steps*/) { return success(); }
};

// Makes steps until `input` ends, an observer has enough steps or something fails. The result has all
// measurements until then. `start` is time 0 of the run. Take it before making the input, so that the whole
// wait for the first batch counts. Observers are called in the order of the list.
//
// With `ranks`, all ranks end each step together, as data-parallel training does when it exchanges gradients:
// no rank begins the next step before all have ended this one. All ranks must take `start` after the same
// barrier. If the run ends on one rank, it ends on all. Only the rank that failed has a `failure`.
//
// To find the last rank of a step, the clocks of the ranks are not compared. Each rank reports how long it
// took since the previous step had ended on all ranks. That moment is the same for all ranks, except for the
// delay with which a rank notices it: some tenths of a millisecond over MPI, because ranks poll at that
// interval. If two ranks arrive closer together than that, chance decides which of them counts as last.
TrainingRun run_training(BatchSource& input, Accelerator& accelerator, SteadyTime start,
                         std::span<StepObserver* const> observers, Communicator* ranks = nullptr);

// The figures of a run. Every second of wall_s is in exactly one of these parts: input_wait_s, the time that
// the accelerators computed, straggler_s, barrier_s or observer_s. There is one exception: without other
// ranks, the overshoot of the last step is in no part.
struct TrainingFigures {
  double wall_s = 0;  // time until the end of the last step, or of the last before_step() if that is later
  double first_batch_s = 0;  // time until the accelerator had its first batch
  double input_wait_s = 0;   // time that the accelerator waited for batches, including the first batch
  double straggler_s = 0;    // time that it waited for ranks that ended their steps later
  double barrier_s = 0;      // time that ranks and accelerators synchronised at the end of steps
  double observer_s = 0;     // time in before_step() and do_collective_work()
  double samples = 0;
  double payload_bytes = 0;
  uint64_t steps_arrived_last = 0;  // the same value as in TrainingRun
  // Median over the steps of (end - begin) / nominal - 1. Absent without a nominal time.
  std::optional<double> step_overshoot;
  // Accelerator utilization (AU): the time computed, divided by the time from the end of the first step to
  // the end of the last, without observer_s in between. The first step is excluded from both times. If all
  // steps take the same time, the time computed is (steps - 1) * nominal. Absent with less than two steps or
  // if nothing computed.
  std::optional<double> utilization;
  // AU as DLIO calculates it (compute_metrics_train in its utils/statscounter.py), with each epoch as one of
  // DLIO's blocks. The AU of an epoch is: computing time without the first step / (wall time - loading and
  // computing of the first step). The result is the mean over epochs. As in DLIO, an epoch of one step counts
  // as 0.
  std::optional<double> utilization_dlio;
};
TrainingFigures figures(const TrainingRun& run, std::chrono::nanoseconds nominal_step);

// Which share of the time that the input needs alone was hidden behind the accelerator's work: 1 -
// input_wait_s / input_alone_s. 1 means all of it, 0 none.
double input_overlap(double input_wait_s, double input_alone_s);

// The wall time that `steps` batches of an input pipeline take without an accelerator. It is calculated from
// the run `alone`, which may be shorter: its first batch, and then the rest at the mean rate of its other
// batches. That run must have at least two steps, unless `steps` is 1.
double input_alone_s(const TrainingRun& alone, uint64_t steps);

}  // namespace penstock
