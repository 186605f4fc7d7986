#include "io_backends/mpi/lifetime.hpp"

#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/mpi/srun.hpp"

namespace penstock {
namespace {

pid_t started_by = 0;

// A forked child has a copy of MPI's state, but is none of its processes.
void end_mpi() {
  if (::getpid() == started_by) MPI_Finalize();
}

Result<int> start() {
  const Launch launch = look_for_launcher();
  be_alone_without_pmix(launch);
  // Open MPI would start a daemon next to a process that no launcher started; it is for spawning more.
  if (launch.ranks <= 1) ::setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  // For file pointers shared by ranks, which Penstock does not use, it would make and remove a file next to
  // each file that is opened.
  ::setenv("OMPI_MCA_sharedfp", "^lockedfile", 0);
  const KeptByMpi kept;
  int threads = MPI_THREAD_SINGLE;
  PENSTOCK_TRY(check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads), "start MPI"));
  started_by = ::getpid();
  std::atexit(end_mpi);
  return threads;
}

}  // namespace

Result<int> start_mpi() {
  static const Result<int> started = start();
  return started;
}

std::mutex& Turns::everyone() {
  static std::mutex mutex;
  return mutex;
}

Error mpi_error(int code, std::string_view what) {
  char words[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, words, &length);
  return make_error(
      Errc::io, "cannot " + std::string(what) + ": " + std::string(words, static_cast<std::size_t>(length)));
}

Result<void> check_mpi(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return success();
  return mpi_error(code, what);
}

}  // namespace penstock
