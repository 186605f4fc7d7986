// Finds out from the environment whether a launcher (mpirun, mpiexec, srun) started this process as one rank
// of a job. Joins the ranks with the MPI module.
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
  std::string size_variable;  // "OMPI_COMM_WORLD_SIZE"; "" without a launcher
};
Launch look_for_launcher();

// The functions of libpenstock_mpi.so. The function `penstock_mpi_module` of the library returns this table.
struct MpiModule {
  const char* version;  // version of the build; the classes of another build may have another layout
  // Whether MPI can join the ranks, found without starting MPI. Every rank of the job gets the same answer.
  Result<void> (*can_join)(const Launch& launch);
  // join() and files() start MPI in this process if it is not running. MPI is finalized when the process
  // exits. files() returns `unsupported` if MPI allows calls only from one thread.
  Result<std::unique_ptr<Communicator>> (*join)();
  Result<std::unique_ptr<MpiFiles>> (*files)(MpiHints hints);
};
inline constexpr const char* kMpiModuleSymbol = "penstock_mpi_module";
using MpiModuleFunction = const MpiModule* (*)();

// Opens the module, which is next to the program or in the library folder of the installation. It stays open.
// `unsupported` with the remedy if it does not exist or belongs to another build. One thread.
Result<const MpiModule*> mpi_module();

// Finds errors of the launcher that every rank finds, so that one rank can report them for all. `unsupported`
// if MPI would end the process instead of joining the ranks. Errors that only some ranks find come from
// join_ranks().
Result<void> check_launch(const Launch& launch);

// Joins the job of this process: a single process without a launcher or with one rank, else the ranks over
// MPI. `unsupported` if MPI cannot join them, or has another number of ranks than the launcher.
Result<std::unique_ptr<Communicator>> join_ranks(const Launch& launch);

}  // namespace penstock
