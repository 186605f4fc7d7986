// What consumes the batches.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/base/options.hpp"
#include "io_backends/base/result.hpp"
#include "miniapps/pipeline/batch.hpp"

namespace penstock {

using SteadyTime = std::chrono::steady_clock::time_point;

// One step as it went.
struct Step {
  SteadyTime begin;     // when the accelerator had both its batch and nothing else to do
  SteadyTime deadline;  // begin + what the step was to take
  SteadyTime end;       // when the caller was told that it is done
};

// Consumes one batch after another. One thread.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  virtual std::chrono::nanoseconds nominal_step() const = 0;  // mean; 0: it consumes as fast as batches come
  // Occupies the accelerator with `batch`, which has just been handed over, and returns when the step is
  // over; Errc::interrupted within a tenth of a second once interrupted().
  virtual Result<Step> step(const Batch& batch) = 0;
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
// With "jitter=2ms" steps take up to so much more or less, evenly spread, drawn by `seed`. With
// "burn=cpu:0.5" a step occupies that many processors of this machine, as real training does beside its
// accelerator, instead of sleeping: what the input pipeline has left is less then.
//
// invalid_argument with the nearest name where the text is no accelerator.
Result<std::unique_ptr<Accelerator>> make_accelerator(std::string_view text, std::uint64_t seed = 0);

}  // namespace penstock
