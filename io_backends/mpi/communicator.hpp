// Communicator over MPI_COMM_WORLD.
#pragma once

#include <memory>

#include "io_backends/core/ranks/communicator.hpp"

namespace penstock {

// Starts MPI unless it runs. Once in a process.
Result<std::unique_ptr<Communicator>> join_mpi();

}  // namespace penstock
