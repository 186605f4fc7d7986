// Makes the accelerator that --accelerator names.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/training.hpp"

namespace penstock {

// The accelerators of this process and their numbers within the whole job. Each draws its jitter by `seed`
// and its number.
struct AcceleratorGroup {
  uint64_t seed = 0;
  uint64_t count = 1;
  uint64_t first_number = 0;  // number of the first accelerator of this process
  uint64_t total_count = 1;   // accelerators of all processes
};

// "none" takes each batch and computes nothing. "emulated:step=10ms" is busy for exactly 10 ms a step:
//
// Steps end at absolute deadlines. A step begins at the deadline of the step before if the batch was ready by
// then: a device that already has its next batch does not wait for the host to wake up. Otherwise it begins
// when the batch was handed over. So waking up late neither shortens a step nor adds up over steps. It shows
// as overshoot (end - deadline). A median overshoot above 1% of the step means that this machine was too busy
// to emulate the accelerator (Verdict::client_bound). The emulated accelerator sleeps until shortly before
// the deadline and spins for at most the last 20 microseconds, so it uses almost no processor time.
//
// "jitter=2ms" makes steps up to 2 ms longer or shorter, evenly distributed, drawn by the seed.
// "burn=cpu:0.5" occupies half a processor of this machine during each step instead of sleeping, as real
// training does in addition to its accelerator. The input pipeline then has less. The work is a fixed number
// of rounds, which prepare() measures on this machine before the run (burner.hpp). The step ends when the
// work is done, so steps get longer if other programs use the processors. Time beyond the nominal step counts
// as waiting, not as busy.
//
// "cpu" trains AlexNet on this machine's processors (cpu_accelerator.hpp). Its steps have no nominal time,
// and a process can have only one.
//
// Several accelerators of one process each take a part of each batch. A step ends with the slowest of them.
// Each draws its own jitter and burns its own processors.
//
// invalid_argument, with the nearest name, if the text names no accelerator. unsupported if this build lacks
// what the accelerator needs.
Result<std::unique_ptr<Accelerator>> make_accelerator(std::string_view text,
                                                      const AcceleratorGroup& group = {});

}  // namespace penstock
