// Communicator over MPI_COMM_WORLD.
#pragma once

#include <memory>
#include <string_view>

#include "io_backends/base/communicator.hpp"

namespace penstock {

// Starts MPI with as many threads as it can have; the communicator ends it. Once in a process.
Result<std::unique_ptr<Communicator>> join_mpi();

// What MPI says of a code that is not MPI_SUCCESS, as an Error of kind `io`: "cannot gather over the ranks:
// ...".
Error mpi_error(int code, std::string_view what);

}  // namespace penstock
