// Under a launcher (mpirun, mpiexec, srun) this process is one rank of a job: what the environment says of
// it, and the module that joins the ranks.
#pragma once

#include <memory>
#include <string>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/ranks/mpi_files.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// What a launcher left in the environment. Nothing is asked of MPI for it.
struct Launch {
  int rank = 0;
  int ranks = 1;
  std::string said_by;  // "OMPI_COMM_WORLD_SIZE"; "" without a launcher
};
Launch look_for_launcher();

// What libpenstock_mpi.so gives: the symbol `penstock_mpi_module` is a function that returns it.
struct MpiModule {
  const char* version;  // of the build: another one's classes may look otherwise
  // Whether MPI can be asked who the ranks are, without asking; every rank of the job gets the same answer.
  Result<void> (*can_meet)(const Launch& launch);
  // Both start MPI in this process unless it runs; it ends with the process. `files` is `unsupported` where
  // this MPI cannot be used by more than one thread.
  Result<std::unique_ptr<Communicator>> (*join)();
  Result<std::unique_ptr<MpiFiles>> (*files)(MpiHints hints);
};
inline constexpr const char* kMpiModuleSymbol = "penstock_mpi_module";
using MpiModuleFunction = const MpiModule* (*)();

// Opens the module, which is next to the program or in the installation's folder for libraries; it stays
// open. `unsupported` with the remedy where it is not there or of another build. One thread.
Result<const MpiModule*> mpi_module();

// What every rank of the job finds wrong with the launcher, so that one can say it for all: `unsupported`
// where MPI would end the process rather than join them. What only one may find join_ranks() says.
Result<void> check_launch(const Launch& launch);

// The job of this process: a single process without a launcher or with one rank, else over MPI.
// `unsupported` where that cannot be had, or where MPI knows of another number of ranks than the launcher.
Result<std::unique_ptr<Communicator>> join_ranks(const Launch& launch);

}  // namespace penstock
