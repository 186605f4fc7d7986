// What consumes the batches.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/metric.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/batch.hpp"

namespace penstock {

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

// What an accelerator has to tell when all steps are over, for the record (accelerator_metrics.hpp).
struct AcceleratorFact {
  MetricInfo metric;
  double value = 0;
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
  virtual std::vector<AcceleratorFact> facts() const { return {}; }
  // The step was over only then, for all that make it together: the next one begins no sooner.
  virtual void over(SteadyTime when) = 0;
};

// The accelerators of one process among all of the job, which differ in what they draw by `seed`.
struct AcceleratorGroup {
  std::uint64_t seed = 0;
  std::uint64_t count = 1;
  std::uint64_t first = 0;   // number of the first of them
  std::uint64_t in_all = 1;  // over all processes
};

// "none" takes each batch and is done. "emulated:step=10ms" is busy for exactly that long:
//
// Steps end at absolute deadlines. A step begins when the step before was due, if the batch was ready by then
// (a device with its next batch in hand does not wait for the host to wake up), else when the batch was
// handed over. Waking up late thus neither shortens a step nor adds up over steps; it shows as overshoot (end
// - deadline), and a median overshoot above 1% of the step means that this machine was too busy to emulate
// the accelerator (Verdict::client_bound). Waiting burns no core (unless told to): it sleeps towards the
// deadline and spins for the last 20 microseconds at most.
//
// With "jitter=2ms" steps take up to 2 ms more or less, evenly spread, drawn by the seed. With
// "burn=cpu:0.5" a step occupies that many processors of this machine, as real training does in addition to
// its accelerator, instead of sleeping: the input pipeline has less left then. That is a fixed amount of
// work, which prepare() finds out for this machine before anything else goes on (burner.hpp), and the step is
// over when it is done: where something else takes the processors, steps get longer. Of what one takes beyond
// its nominal time the accelerator counts as waiting, not as busy.
//
// "cpu" trains AlexNet on this machine's processors (cpu_accelerator.hpp): its steps take what they take, and
// there is one of them a process.
//
// Several of one process have a part of each batch each, and a step ends with the slowest of them: each draws
// its own jitter, and burns what it is told to.
//
// invalid_argument with the nearest name where the text is no accelerator, unsupported where this build lacks
// what it needs.
Result<std::unique_ptr<Accelerator>> make_accelerator(std::string_view text,
                                                      const AcceleratorGroup& group = {});

}  // namespace penstock
