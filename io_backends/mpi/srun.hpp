// What Open MPI makes of srun. It takes each task of a step for a rank that PMIx introduces to the others,
// and where srun offers no PMIx it prints a page on each rank and ends the process, whoever calls it.
#pragma once

#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Whether MPI can be asked who the ranks of `launch` are; `unsupported` with the remedy where that would end
// the process. The environment alone decides: every rank gets the same answer. Starts no MPI.
Result<void> ranks_can_meet(const Launch& launch);

// Before MPI starts in a task that is alone in its step: without PMIx it is a process that no launcher
// started.
void be_alone_without_pmix(const Launch& launch);

}  // namespace penstock
