// Communicator over MPI_COMM_WORLD.
#pragma once

#include <memory>

#include "io_backends/base/ranks/communicator.hpp"

namespace penstock {

// Starts MPI where nobody has. Once in a process.
Result<std::unique_ptr<Communicator>> join_mpi();

}  // namespace penstock
