// Threads: any thread calls start_mpi(). The first call starts MPI, and others wait for it. The thread that
// calls exit() runs end_mpi().
// Lock: MpiSerializer::process_mutex() is the only mutex, one for the process. It is not held while MPI
// starts or ends.
// Memory: errors allocate, and MPI may allocate in any call.
// Ctrl-C: this file does not check for a signal. A signal does not end MPI_Init_thread() or MPI_Finalize().
// Fork: a forked child does not finalize MPI.
// Crash: MPI is not finalized. The other ranks wait for the dead one until the launcher ends the job.
#include "io_backends/mpi/lifetime.hpp"

#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/mpi/srun.hpp"

namespace penstock {
namespace {

pid_t owner_process = 0;

// Finalizes MPI when the process exits. A forked child has a copy of MPI's state but is not a process of the
// job, so it does not finalize MPI.
void end_mpi() {
  if (::getpid() == owner_process) MPI_Finalize();
}

Result<int> start() {
  const Launch launch = look_for_launcher();
  start_alone_without_pmix(launch);
  // Without a launcher Open MPI would start a daemon, which only programs that spawn processes need. This
  // setting prevents that.
  if (launch.ranks <= 1) ::setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  // For file pointers that ranks share, Open MPI makes and removes an extra file next to each opened file.
  // Penstock does not use such pointers, so they are turned off.
  ::setenv("OMPI_MCA_sharedfp", "^lockedfile", 0);
  const IgnoreMpiLeaks ignore_leaks;
  int threads = MPI_THREAD_SINGLE;
  PENSTOCK_TRY(check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads), "start MPI"));
  owner_process = ::getpid();
  std::atexit(end_mpi);
  return threads;
}

}  // namespace

Result<int> start_mpi() {
  // Runs once in a process: C++ makes other threads wait until the static variable is initialised.
  static const Result<int> started = start();
  return started;
}

std::mutex& MpiSerializer::process_mutex() {
  static std::mutex mutex;
  return mutex;
}

Error mpi_error(int code, std::string_view what) {
  char words[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, words, &length);
  return make_error(Errc::io, "cannot " + std::string(what) + ": " + std::string(words, size_t(length)));
}

Result<void> check_mpi(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return success();
  return mpi_error(code, what);
}

}  // namespace penstock
