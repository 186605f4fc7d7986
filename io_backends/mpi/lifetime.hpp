// MPI in this process: started once, by whoever needs it first, and ended when the process ends.
#pragma once

#include <string_view>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

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

// While it lives, what MPI's library allocates and keeps is no leak to a sanitizer: some of it is kept for
// ever, by plug-ins that are unloaded in the end.
#ifdef __SANITIZE_ADDRESS__
using KeptByMpi = __lsan::ScopedDisabler;
#else
class KeptByMpi {
 public:
  KeptByMpi() {}  // not defaulted: else a variable of it is an unused one
};
#endif

}  // namespace penstock
