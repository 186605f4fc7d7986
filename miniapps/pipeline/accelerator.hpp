// Makes the accelerator that the option --accelerator names.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/training.hpp"

namespace penstock {

// The accelerators of this process, and their numbers among the accelerators of all processes. Each
// accelerator draws its random step times from `seed` and its number.
struct AcceleratorGroup {
  uint64_t seed = 0;
  uint64_t count = 1;
  uint64_t first_number = 0;  // number of the first accelerator of this process
  uint64_t total_count = 1;   // number of accelerators of all processes together
};

// Makes the accelerator that `text` describes: "none", "emulated:OPTIONS" or "cpu:OPTIONS".
//
// "none" takes each batch and computes nothing.
//
// An accelerator "emulated:step=10ms" is busy for exactly 10 ms in each step: the deadline of a step is 10 ms
// after its start. A step begins at the deadline of the previous step if its own batch was ready by then: a
// real device that already has its next batch does not wait for the host to wake up. Otherwise the step
// begins when its batch is handed over. So if this machine wakes up late after a step, later steps are not
// delayed. The late wake-up only shows as overshoot (Step::end - Step::deadline). A median overshoot above 1%
// of the step (5% with burn=) means that this machine was too busy to emulate the accelerator
// (Verdict::client_bound). The emulated accelerator sleeps until shortly before the deadline and spins for at
// most the last 20 microseconds, so it uses almost no processor time.
//
// "jitter=2ms" makes emulated steps up to 2 ms longer or shorter. Each change is a random number between -2
// ms and +2 ms. It depends only on the seed, the step and the number of the accelerator.
//
// "stdev=2ms" draws the times of steps from a normal distribution with that standard deviation, or, with
// "distribution=gamma" or "distribution=poisson", from another one. Of a Poisson distribution only the mean
// counts; its times are whole seconds.
//
// "burn=cpu:0.5" occupies half a processor of this machine during each step instead of sleeping: a real
// training also uses the processor while its accelerator computes. So the input pipeline has less processor
// time. The work of a step is a fixed number of rounds, which prepare() measures on this machine before the
// run (burner.hpp). The step ends when the work is done, so steps get longer if other programs use the
// processors. Time beyond the nominal step counts as waiting, not as busy.
//
// "cpu" trains AlexNet on this machine's processors (cpu_accelerator.hpp). Its steps have no nominal time,
// and a process can have only one.
//
// If a process has several accelerators, each takes a part of each batch. A step ends when the slowest of
// them has ended it. Each accelerator draws its own jitter and occupies processors of its own.
//
// Errors: invalid_argument, with the nearest name, if the text names no accelerator; unsupported if this
// build lacks what the accelerator needs.
Result<std::unique_ptr<Accelerator>> make_accelerator(std::string_view text,
                                                      const AcceleratorGroup& group = {});

}  // namespace penstock
