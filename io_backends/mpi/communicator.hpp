// Joins the ranks of MPI_COMM_WORLD as a Communicator.
#pragma once

#include <memory>

#include "io_backends/core/ranks/communicator.hpp"

namespace penstock {

// Starts MPI if it is not running. Call it once in a process.
Result<std::unique_ptr<Communicator>> join_mpi();

}  // namespace penstock
