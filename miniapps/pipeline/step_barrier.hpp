// The end of a step that the ranks of a job make together, as data-parallel training does when it exchanges
// gradients: none begins the next before all have ended this one.
#pragma once

#include <chrono>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/accelerator.hpp"

namespace penstock {

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

}  // namespace penstock
