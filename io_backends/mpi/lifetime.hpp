// MPI in this process: started once, by whoever needs it first, and ended when the process ends.
#pragma once

#include <mutex>
#include <string_view>
#ifdef PENSTOCK_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

#include "io_backends/core/result.hpp"

namespace penstock {

// Starts MPI with as many threads as it can have; returns the MPI_THREAD_... that it gives. Without a
// launcher this process is a job of one rank, for which no daemon is started. `io` where MPI will not start.
// Any thread.
Result<int> start_mpi();

// Whose turn it is to call MPI, among all threads of the process. Opening and closing files is collective: of
// one communicator they must not overlap, whichever file they are of. Where MPI is not for several threads,
// no two calls must; MpiFile's may then wait for other ranks with the turn taken, so that nothing else does.
class Turns {
 public:
  explicit Turns(bool many_threads) : many_threads_(many_threads) {}
  std::unique_lock<std::mutex> for_collective() const { return std::unique_lock(everyone()); }
  std::unique_lock<std::mutex> for_any() const {
    return many_threads_ ? std::unique_lock<std::mutex>() : for_collective();
  }
  bool many_threads() const { return many_threads_; }

 private:
  static std::mutex& everyone();
  const bool many_threads_;
};

// What MPI says of a code that is not MPI_SUCCESS, as an Error of kind `io`: "cannot gather over the ranks:
// ...".
Error mpi_error(int code, std::string_view what);
Result<void> check_mpi(int code, std::string_view what);

// While it lives, what MPI's library allocates and keeps is no leak to a sanitizer: some of it is kept for
// ever, by plug-ins that are unloaded in the end.
#ifdef PENSTOCK_ADDRESS_SANITIZER
using KeptByMpi = __lsan::ScopedDisabler;
#else
class KeptByMpi {
 public:
  KeptByMpi() {}  // not defaulted: else a variable of it is an unused one
};
#endif

}  // namespace penstock
