// Handles tasks that srun starts without PMIx. Open MPI takes each task of a step for a rank, and uses PMIx
// to join the ranks. If srun offers no PMIx, Open MPI prints a page on each rank and ends the process.
#pragma once

#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Whether MPI can join the ranks of `launch`. `unsupported` with the remedy if trying it would end the
// process. Only the environment decides, so every rank gets the same answer. Does not start MPI.
Result<void> ranks_can_join(const Launch& launch);

// Call it before MPI starts in a task that is the only one of its step. Without PMIx, MPI then starts as in a
// process without a launcher.
void start_alone_without_pmix(const Launch& launch);

}  // namespace penstock
