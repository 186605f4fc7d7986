// MPI in this process: started once, by whoever needs it first, and ended when the process ends.
#pragma once

#include <string_view>

#include "io_backends/base/result.hpp"

namespace penstock {

// Starts MPI with as many threads as it can have; returns the MPI_THREAD_... that it gives. Without a
// launcher this process is a job of one rank, for which no daemon is started. `io` where MPI will not start.
// Any thread.
Result<int> start_mpi();

// What MPI says of a code that is not MPI_SUCCESS, as an Error of kind `io`: "cannot gather over the ranks:
// ...".
Error mpi_error(int code, std::string_view what);
Result<void> check_mpi(int code, std::string_view what);

}  // namespace penstock
