// The training loop: pull a batch, occupy the accelerator, again; and the figures that follow from when
// things happened.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/stage.hpp"
#include "miniapps/pipeline/step_barrier.hpp"

namespace penstock {

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
  std::int64_t aside_ns = 0;       // in BeforeStep and in the collective, between the step before and handed
  std::int64_t collective_ns = 0;  // of that, in the collective, directly after the step before
};

struct TrainingRun {
  std::vector<StepTimes> steps;     // those that were finished, on all ranks
  std::uint64_t batch = 0;          // samples a step
  std::uint64_t last = 0;           // steps that this rank ended as the last of several
  std::int64_t aside_after_ns = 0;  // in BeforeStep and in the collective after the last step
  std::optional<Error> failure;     // why it ended early; Errc::interrupted when the user stopped it
};

// Called when a step has ended, with its number, counting from 0. Whether to go on; an error ends the run
// too, as its failure.
using StepObserver = std::function<Result<bool>(std::uint64_t step, const Batch& batch)>;

// Called when the batch of the next step is there and before the step begins, with the step's number, and
// once more, with null, when the input has ended: what a program does between steps that is no training, such
// as validating. Whether it did anything; an error ends the run as its failure.
using BeforeStep = std::function<Result<bool>(std::uint64_t step, const Batch* next)>;

// What all ranks do together between steps, such as saving what they have learned. `hold` is called after a
// step for which `due` is true: after the observer and before the next batch is asked for. `due` returns the
// same on every rank. No rank calls `hold` unless all have come: where one has failed since the step, the run
// ends. An error ends the run, too.
struct StepCollective {
  std::function<bool(std::uint64_t steps)> due{};
  std::function<Result<void>(std::uint64_t steps)> hold{};
};

// Runs until `input` ends, the observer has enough or something fails; what was measured until then is kept.
// `start` is the run's time 0: taken before the input stage was made, so that the wait for the first batch
// counts whole. With `together` (whose begin() is the start) every rank makes as many steps as the one that
// ends first, for whatever reason: only that one has a failure to tell.
TrainingRun run_training(Stage<const Batch*>& input, Accelerator& accelerator, SteadyTime start,
                         const StepObserver& observer, StepBarrier* together = nullptr,
                         const BeforeStep& before_step = {}, const StepCollective& collective = {});

// What the times come to. Every second of wall_s is in exactly one of input_wait_s, the time that the
// accelerators computed, straggler_s, barrier_s and aside_s; of a rank alone the last step's overshoot is in
// none.
struct TrainingFigures {
  double wall_s = 0;         // to the end of the last step, or of BeforeStep after it
  double first_batch_s = 0;  // to the first batch in the accelerator's hands
  double input_wait_s = 0;   // the accelerator had nothing to do, the wait for the first batch included
  double straggler_s = 0;    // waited for other ranks, which ended their steps later
  double barrier_s = 0;      // for ranks and accelerators to find each other at the end of steps
  double aside_s = 0;        // in BeforeStep and in collectives
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
