// Starts MPI at its first use in this process. MPI ends with the process.
#pragma once

#include <mutex>
#include <string_view>
#ifdef PENSTOCK_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

#include "io_backends/core/result.hpp"

namespace penstock {

// Starts MPI with the highest thread level that it supports, and returns this level (MPI_THREAD_...). Without
// a launcher this process is a job of one rank, for which no daemon is started. Fails with `io` if MPI does
// not start. Any thread may call it.
Result<int> start_mpi();

// Serializes the calls of MPI among all threads of the process. If MPI does not allow several threads at
// once, no two calls may overlap. Two calls that open or close files may never overlap: they are collective,
// and MPI forbids that on one communicator, even for different files.
// Only join_mpi() and the calls that open, read or close an MpiFile may hold the lock while they wait for
// other ranks.
class MpiSerializer {
 public:
  explicit MpiSerializer(bool many_threads) : many_threads_(many_threads) {}
  std::unique_lock<std::mutex> lock_collective() const { return std::unique_lock(process_mutex()); }
  std::unique_lock<std::mutex> lock_call() const {
    return many_threads_ ? std::unique_lock<std::mutex>() : lock_collective();
  }
  bool many_threads() const { return many_threads_; }

 private:
  static std::mutex& process_mutex();
  const bool many_threads_;
};

// Turns an MPI error code into an Error of kind `io`, with MPI's text: "cannot gather over the ranks: ...".
Error mpi_error(int code, std::string_view what);
Result<void> check_mpi(int code, std::string_view what);

// While an IgnoreMpiLeaks exists, the leak sanitizer ignores the memory that this thread allocates inside
// MPI. Otherwise it would report leaks: MPI never frees some of that memory, and unloads the plug-ins that
// point to it.
#ifdef PENSTOCK_ADDRESS_SANITIZER
using IgnoreMpiLeaks = __lsan::ScopedDisabler;
#else
class IgnoreMpiLeaks {
 public:
  IgnoreMpiLeaks() {}  // not `= default`, which would make compilers warn of an unused variable
};
#endif

}  // namespace penstock
