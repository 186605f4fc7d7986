// The training loop: pulls a batch, occupies the accelerator and calls the observers, step after step. Also
// calculates the figures of a run from the times of its steps.
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
  SteadyTime begin;  // when the accelerator had the batch and had ended the step before
  // `begin` + nominal time. Equal to `end` for an accelerator without a nominal time.
  SteadyTime deadline;
  SteadyTime end;                       // when the caller learned that the step is over
  std::chrono::nanoseconds busy{0};     // time that the accelerators computed; the mean if there are several
  std::chrono::nanoseconds nominal{0};  // nominal time of the step; 0: it has none
};

// Consumes one batch after another. One thread: the training loop's.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  virtual std::chrono::nanoseconds nominal_step() const = 0;  // the mean over steps; 0: unknown
  // Whether steps take time. If they do, input can be loaded during steps.
  virtual bool computes() const { return nominal_step().count() > 0; }
  // Success if it can use batches with this layout (Transform::layout), else invalid_argument with the
  // remedy.
  virtual Result<void> check_layout(std::string_view /*layout*/) const { return success(); }
  // Prepares for batches with this layout and number of samples; it may need memory and seconds. Call it
  // once, before the first step. Errors are those of check_layout(), exhausted and interrupted.
  virtual Result<void> prepare(std::string_view layout, size_t /*samples*/) { return check_layout(layout); }
  // Occupies the accelerator with `batch` and returns when the step is over. Errc::interrupted within 100 ms
  // once interrupted(); `cpu` first ends its current part of a layer.
  virtual Result<Step> step(const Batch& batch) = 0;
  // Adds the accelerator's metrics (accelerator_metrics.hpp) to the record. Call it after the last step.
  virtual void record(Trial& /*trial*/) const {}
  // Tells it that all ranks have ended the step at this time: the next step begins no earlier.
  virtual void set_step_end(SteadyTime when) = 0;
};

// The accelerator "none": ends each step at once.
std::unique_ptr<Accelerator> no_accelerator();

// The times of one step, in nanoseconds since the start of the run.
struct StepTimes {
  uint64_t epoch = 0;
  uint64_t payload_bytes = 0;
  int64_t handed_ns = 0;  // when next() returned its batch
  int64_t begin_ns = 0;   // as Step::begin
  int64_t deadline_ns = 0;
  int64_t end_ns = 0;
  int64_t nominal_ns = 0;
  int64_t busy_ns = 0;  // as Step::busy
  // When the next step could begin: at the deadline of this one, or when all ranks had ended it.
  int64_t next_may_begin_ns = 0;
  // Parts of the time from end_ns to next_may_begin_ns, with several ranks.
  int64_t straggler_ns = 0;  // wait for the last rank to arrive; 0: this rank was the last
  int64_t barrier_ns = 0;    // time that the ranks then needed to synchronise
  int64_t observer_ns = 0;   // time in observers between the step before and handed_ns
  // Part of observer_ns: spent in do_collective_work(), directly after the step before.
  int64_t collective_ns = 0;
};

struct TrainingRun {
  std::vector<StepTimes> steps;     // steps that all ranks ended
  uint64_t batch = 0;               // samples of a step
  uint64_t steps_arrived_last = 0;  // steps that this rank ended as the last of several ranks
  int64_t observer_after_ns = 0;    // time in observers after the last step
  std::optional<Error> failure;     // why the run ended early; Errc::interrupted after Ctrl-C
};

// Work around the steps of a run: progress, logs, validation, checkpoints. The training loop's thread makes
// all calls, without a lock. An error of any call ends the run and becomes its failure.
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  // Called when the batch of the next step is ready and `steps` steps are made. Called once more with null at
  // the end of the input. For work that is not training, such as validation. Returns true if it did such
  // work; the time of that work does not count as part of the next step.
  virtual Result<bool> before_step(uint64_t /*steps*/, const Batch* /*next*/) { return false; }

  // Called after all ranks have made step number `step`, counting from 0, with this rank's batch. Returns
  // false when the run has made enough steps.
  virtual Result<bool> after_step(uint64_t /*step*/, const Batch& /*batch*/) { return true; }

  // For work that all ranks do together between steps, such as saving a checkpoint. collective_work_due()
  // returns the same on every rank. If it is true, do_collective_work() is called after after_step() and
  // before the next batch is requested. No rank calls do_collective_work() before all ranks have arrived. If
  // one rank has failed since the step, the run ends instead.
  virtual bool collective_work_due(uint64_t /*steps*/) const { return false; }
  virtual Result<void> do_collective_work(uint64_t /*steps*/) { return success(); }
};

// Runs until `input` ends, an observer has enough steps or something fails. Measurements until then are
// returned. `start` is time 0 of the run. Take it before making the input, so that the whole wait for the
// first batch counts. Observers are called in the order of the list.
//
// With `ranks`, all ranks end each step together, as data-parallel training does when it exchanges gradients:
// no rank begins the next step before all have ended this one. All take `start` after the same barrier. The
// run ends on all ranks when it ends on one. Only that rank has a `failure`. The clocks of the ranks are not
// compared. A rank reports how long ago the ranks were last together. That moment is the same on all ranks,
// except for the time until a rank learns of it: some tenths of a millisecond over MPI, whose wait polls that
// often. If two ranks arrive within that time, chance decides which one counts as last.
TrainingRun run_training(BatchSource& input, Accelerator& accelerator, SteadyTime start,
                         std::span<StepObserver* const> observers, Communicator* ranks = nullptr);

// The figures of a run. Every second of wall_s is in exactly one part: input_wait_s, the time that the
// accelerators computed, straggler_s, barrier_s or observer_s. The one exception: without other ranks, the
// overshoot of the last step is in none.
struct TrainingFigures {
  double wall_s = 0;         // time until the end of the last step, or of a before_step() after it
  double first_batch_s = 0;  // time until the accelerator had its first batch
  double input_wait_s = 0;   // time that the accelerator waited for batches, the first included
  double straggler_s = 0;    // time that it waited for ranks that ended their steps later
  double barrier_s = 0;      // time that ranks and accelerators synchronised at the end of steps
  double observer_s = 0;     // time in before_step() and do_collective_work()
  double samples = 0;
  double payload_bytes = 0;
  uint64_t steps_arrived_last = 0;  // as in TrainingRun
  // Median of (end - begin) / nominal - 1. Absent without a nominal step.
  std::optional<double> step_overshoot;
  // Accelerator utilization (AU): time computed / (end of the last step - end of the first step - observer_s
  // between them). The first step is excluded from both. The time computed is (steps - 1) * nominal if all
  // steps take the same. Absent with less than two steps or if nothing computed.
  std::optional<double> utilization;
  // AU as DLIO calculates it (its utils/statscounter.py, compute_metrics_train), with each epoch as one of
  // DLIO's blocks. For each epoch: computing time without the first step / (wall time - loading and computing
  // of the first step). Then the mean over epochs. As in DLIO, an epoch of one step counts as 0.
  std::optional<double> utilization_dlio;
};
TrainingFigures figures(const TrainingRun& run, std::chrono::nanoseconds nominal_step);

// The share of the input's own time that was hidden behind the accelerator's work: 1 - input_wait_s /
// input_alone_s. 1 means all of it, 0 none.
double input_overlap(double input_wait_s, double input_alone_s);

// The wall time that `steps` batches of an input pipeline take without an accelerator. Calculated from a run
// that may be shorter: its first batch, then the others at its mean rate. That run has at least two steps
// unless `steps` is 1.
double input_alone_s(const TrainingRun& alone, uint64_t steps);

}  // namespace penstock
