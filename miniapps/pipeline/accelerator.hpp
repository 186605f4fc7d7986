// The accelerators that --accelerator names.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/training.hpp"

namespace penstock {

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
