// Finds out from the environment whether a launcher (mpirun, mpiexec, srun) started this process as one rank
// of a job. Joins the ranks with the MPI module, which is the library libpenstock_mpi.so.
#pragma once

#include <memory>
#include <string>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/ranks/mpi_files.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The variables that a launcher sets in the environment. Reading them starts no MPI.
struct Launch {
  int rank = 0;
  int ranks = 1;
  std::string size_variable;  // such as "OMPI_COMM_WORLD_SIZE"; "": no launcher
};
Launch look_for_launcher();

// The functions of libpenstock_mpi.so. The function `penstock_mpi_module` of the library returns this table.
struct MpiModule {
  // Penstock's version when the module was built. The program refuses a module of another version, because
  // its classes may have another layout.
  const char* version;
  // Finds out without starting MPI whether MPI can join the ranks. Every rank of the job gets the same
  // answer.
  Result<void> (*can_join)(const Launch& launch);
  // join() and files() start MPI in this process if it is not running. MPI is finalized when the process
  // exits. files() returns `unsupported` if MPI allows calls only from one thread.
  Result<std::unique_ptr<Communicator>> (*join)();
  Result<std::unique_ptr<MpiFiles>> (*files)(MpiHints hints);
};
inline constexpr const char* kMpiModuleSymbol = "penstock_mpi_module";
using MpiModuleFunction = const MpiModule* (*)();

// Opens libpenstock_mpi.so, which is next to the program or in the library folder of the installation, and
// returns its table. The library stays open. Fails with `unsupported` and the remedy if the library cannot be
// opened or has another version than the program. Only one thread may call this.
Result<const MpiModule*> mpi_module();

// Checks whether MPI can join the ranks of this job. Fails with `unsupported` if MPI would end the process
// instead. It finds only errors that are the same on every rank, so that one rank can report them for all.
// join_ranks() reports errors that only some ranks find.
Result<void> check_launch(const Launch& launch);

// Joins the job of this process. Without a launcher, or with one rank, the job is this process alone.
// Otherwise MPI joins the ranks. Fails with `unsupported` if MPI cannot join them, or if MPI and the launcher
// have different numbers of ranks.
Result<std::unique_ptr<Communicator>> join_ranks(const Launch& launch);

}  // namespace penstock
