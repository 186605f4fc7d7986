// The training loop: pull a batch, occupy the accelerator, tell the observers, again; and the figures that
// follow from when things happened.
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

// One step as it went.
struct Step {
  SteadyTime begin;  // when the accelerator had both its batch and nothing else to do
  SteadyTime
      deadline;    // begin + what the step was to take; of work that takes what it takes, when it was done
  SteadyTime end;  // when the caller was told that it is done
  std::chrono::nanoseconds busy{0};     // of that the accelerators computed; the mean where they are several
  std::chrono::nanoseconds nominal{0};  // what the step was to take; 0: what it takes
};

// Consumes one batch after another. One thread.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  virtual std::chrono::nanoseconds nominal_step() const = 0;  // mean; 0: none is known
  // Whether steps take time, which input can hide behind.
  virtual bool computes() const { return nominal_step().count() > 0; }
  // Whether it can take batches of that layout (Transform::layout()); invalid_argument with the remedy.
  virtual Result<void> takes(std::string_view /*layout*/) const { return success(); }
  // Makes ready for batches of that layout and of that many samples, which may take memory and seconds. Once,
  // before the first step; fails like takes(), and with exhausted and interrupted.
  virtual Result<void> prepare(std::string_view layout, std::size_t /*samples*/) { return takes(layout); }
  // Occupies the accelerator with `batch`, which has just been handed over, and returns when the step is
  // over; Errc::interrupted within a tenth of a second once interrupted() (`cpu`: when a part of a layer is
  // computed).
  virtual Result<Step> step(const Batch& batch) = 0;
  // Adds what it has to tell when all steps are over (accelerator_metrics.hpp).
  virtual void record(Trial& /*trial*/) const {}
  // The step was over only then, for all that make it together: the next one begins no sooner.
  virtual void over(SteadyTime when) = 0;
};

// Takes each batch and is done with it at once: the accelerator "none".
std::unique_ptr<Accelerator> no_accelerator();

// The end of a step that the ranks of a job make together, as data-parallel training does when it exchanges
// gradients: none begins the next before all have ended this one.
//
// One thread of each rank, and every rank makes the same calls. The clocks of the ranks are not compared: a
// rank says how long ago the ranks were last together, and that moment is the same for all but for what it
// takes them to learn of it: some tenths of a millisecond over MPI, whose waiting looks so often. Who was
// last by less is chance.
class StepBarrier {
 public:
  explicit StepBarrier(Communicator& ranks) : ranks_(ranks) {}

  // The time 0 of a run: returns on all ranks at once.
  Result<SteadyTime> begin();

  struct Over {
    bool for_all = false;                   // every rank made the step; else none will make another
    SteadyTime at;                          // when this rank knew
    std::chrono::nanoseconds straggler{0};  // waited until the last rank had come, and
    std::chrono::nanoseconds barrier{0};    // for the ranks to find each other
    bool last = false;                      // this was the last rank
  };
  // This rank made the step, or (`made` false) cannot and leaves, which it says once.
  Result<Over> arrive(bool made);

 private:
  Communicator& ranks_;
  SteadyTime together_;  // when all were here
};

// When one step happened, in nanoseconds since the start of the run.
struct StepTimes {
  std::uint64_t epoch = 0;
  std::uint64_t payload_bytes = 0;
  std::int64_t handed_ns = 0;  // next() returned its batch
  std::int64_t begin_ns = 0;   // as in Step
  std::int64_t deadline_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t nominal_ns = 0;
  std::int64_t busy_ns = 0;       // as in Step
  std::int64_t over_ns = 0;       // the next one could begin: the deadline, or when all ranks had ended it
  std::int64_t straggler_ns = 0;  // of the time from end to over, as StepBarrier divides it
  std::int64_t barrier_ns = 0;
  std::int64_t aside_ns = 0;       // of observers, between the step before and handed
  std::int64_t collective_ns = 0;  // of that, in hold(), directly after the step before
};

struct TrainingRun {
  std::vector<StepTimes> steps;     // those that were finished, on all ranks
  std::uint64_t batch = 0;          // samples a step
  std::uint64_t last = 0;           // steps that this rank ended as the last of several
  std::int64_t aside_after_ns = 0;  // of observers, after the last step
  std::optional<Error> failure;     // why it ended early; Errc::interrupted when the user stopped it
};

// What else a run does at its steps: progress, logs, validation, checkpoints. The thread of the training loop
// makes all calls. An error of any of them ends the run, as its failure.
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  // The batch of the next step is there, and `steps` steps are made. Once more, with null, when the input has
  // ended. For what is no training, such as validating. Returns whether it did anything, which then takes
  // none of the next step's time.
  virtual Result<bool> before_step(std::uint64_t /*steps*/, const Batch* /*next*/) { return false; }

  // All ranks have made step number `step`, counting from 0, with this batch of this rank. Returns false when
  // the run has made enough steps.
  virtual Result<bool> after_step(std::uint64_t /*step*/, const Batch& /*batch*/) { return true; }

  // What all ranks do together between steps, such as saving what they have learned. `due` returns the same
  // on every rank. Where it is true, hold() is called after after_step() and before the next batch is asked
  // for. No rank calls hold() unless all have come: where one has failed since the step, the run ends.
  virtual bool due(std::uint64_t /*steps*/) const { return false; }
  virtual Result<void> hold(std::uint64_t /*steps*/) { return success(); }
};

// Runs until `input` ends, an observer has enough or something fails; what was measured until then is kept.
// `start` is the run's time 0: taken before the input was made, so that the wait for the first batch counts
// whole. Observers are called in the order of the list. With `together` (whose begin() is the start) every
// rank makes as many steps as the one that ends first, for whatever reason: only that one has a failure to
// tell.
TrainingRun run_training(BatchSource& input, Accelerator& accelerator, SteadyTime start,
                         std::span<StepObserver* const> observers, StepBarrier* together = nullptr);

// What the times come to. Every second of wall_s is in exactly one of input_wait_s, the time that the
// accelerators computed, straggler_s, barrier_s and aside_s; of a rank alone the last step's overshoot is in
// none.
struct TrainingFigures {
  double wall_s = 0;         // to the end of the last step, or of before_step() after it
  double first_batch_s = 0;  // to the first batch in the accelerator's hands
  double input_wait_s = 0;   // the accelerator had nothing to do, the wait for the first batch included
  double straggler_s = 0;    // waited for other ranks, which ended their steps later
  double barrier_s = 0;      // for ranks and accelerators to find each other at the end of steps
  double aside_s = 0;        // in before_step() and hold()
  double samples = 0;
  double payload_bytes = 0;
  std::optional<double> step_overshoot;  // median of (end - begin) / nominal - 1; absent without a nominal
                                         // step
  // What the accelerators computed, (steps - 1) * nominal where they all take as long, over end of the last
  // step - end of the first, less aside_s between: the first step is left out on both sides. Absent
  // below two steps and where nothing computed.
  std::optional<double> utilization;
  // As DLIO reckons (its utils/statscounter.py, compute_metrics_train, one block an epoch): of each epoch the
  // measured computing time without the first step, over the epoch's wall time less its first step's loading
  // and computing; then the mean over epochs (0 for an epoch of one step, as there).
  std::optional<double> utilization_dlio;
};
TrainingFigures figures(const TrainingRun& run, std::chrono::nanoseconds nominal_step);

// What share of the time that the input takes by itself was hidden behind the accelerator's work:
// 1 - input_wait_s / input_alone_s; 1 means all, 0 none.
double input_overlap(double input_wait_s, double input_alone_s);

// The wall time of `steps` batches of an input pipeline alone, from a run of it that may be shorter: its
// first batch, then the others at its mean pace. The run has at least two steps unless `steps` is 1.
double input_alone_s(const TrainingRun& alone, std::uint64_t steps);

}  // namespace penstock
