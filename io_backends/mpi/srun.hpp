// Handles tasks that srun starts without PMIx. PMIx is the interface by which a launcher connects the ranks
// of a job. Open MPI assumes that each task of a step is a rank, and uses PMIx to join the ranks. If srun
// offers no PMIx, Open MPI prints a long message on each rank and ends the process.
#pragma once

#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Checks whether MPI can join the ranks of `launch`. If the attempt would end the process, fails with
// `unsupported` and the remedy. It reads only the environment and the names of the MPI library's variables
// (MPI_T), so every rank gets the same answer. It does not start MPI.
Result<void> ranks_can_join(const Launch& launch);

// Lets MPI start as in a process without a launcher. Does this only if this task is the only one of its step
// and has no PMIx. Call it before MPI starts.
void start_alone_without_pmix(const Launch& launch);

}  // namespace penstock
