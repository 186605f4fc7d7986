// Threads: the thread that owns the ring calls set_up() and cut_off(). The kernel works on the requests at
// the same time. Any thread may call the functions that make messages.
// Lock: none.
// Memory: set_up() allocates the ring and its table of files. The functions that make messages allocate, and
// may throw; the others do neither.
// Ctrl-C: cut_off() repeats its wait after EINTR, because the kernel may still write to memory of reads.
// Crash: the kernel ends the requests with the process. This file writes no files.
#include "io_backends/uring/ring.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>

#include "io_backends/core/limits.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {
namespace {

constexpr unsigned kMostEntries = 4096;       // largest number of requests in one submit
constexpr unsigned kMostCompletions = 65536;  // largest number of completions that the kernel allows
constexpr unsigned kMostTableFiles = 1024;    // largest number of slots for opened objects
constexpr unsigned kSqpollIdleMs = 1000;
constexpr int kMaxWaitMs = 30'000;

}  // namespace

std::string ring_memory_remedy(int sys_errno) {
  if (sys_errno != ENOMEM || ::geteuid() == 0) return "";  // root may lock any amount of memory
  const std::string limit = byte_limit_text(RLIMIT_MEMLOCK);
  return limit.empty() ? ""
                       : "; the rings of all threads need locked memory: raise ulimit -l" + limit +
                             ", or choose fewer --threads or a smaller --depth";
}

Error ring_error(int sys_errno, size_t depth) {
  const Error failed =
      errno_error(sys_errno, "cannot set up", "an io_uring of depth " + std::to_string(depth));
  return make_error(failed.code, failed.message() + ring_memory_remedy(sys_errno));
}

int UringRing::create(unsigned entries, unsigned completions, unsigned flags) {
  io_uring_params params{};
  params.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL | flags;
  params.cq_entries = completions;
  params.sq_thread_idle = kSqpollIdleMs;
  const int result = ::io_uring_queue_init_params(entries, &ring_, &params);
  ready_ = result == 0;
  if (!ready_) return -result;
  constexpr unsigned kNeededFeatures = IORING_FEAT_CQE_SKIP | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE;
  return (ring_.features & kNeededFeatures) == kNeededFeatures ? 0 : ENOSYS;
}

int UringRing::set_up(size_t depth, bool sqpoll) {
  const auto entries = unsigned(std::min<size_t>(3 * depth, kMostEntries));
  // At least bit_ceil(entries) completions are needed: the kernel rounds the number of entries up to a power
  // of two, and refuses a smaller number of completions.
  const auto completions =
      unsigned(std::min<size_t>(std::max<size_t>(2 * depth + 1, std::bit_ceil(entries)), kMostCompletions));
  // With these flags (Linux 6.1 and later) completions are processed only when this thread asks for them.
  const unsigned best_flags =
      sqpoll ? IORING_SETUP_SQPOLL : IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  int failed = create(entries, completions, best_flags);
  if (failed == EINVAL && !sqpoll) failed = create(entries, completions, IORING_SETUP_COOP_TASKRUN);
  if (failed == EINVAL && !sqpoll) failed = create(entries, completions, 0);
  if (failed != 0) return failed;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const uint64_t free_descriptors = limit.rlim_cur > depth ? limit.rlim_cur - depth : 0;
  file_slots_ = unsigned(std::bit_floor(std::min<uint64_t>(free_descriptors, kMostTableFiles)));
  chain_slots_ = unsigned(depth);
  return -::io_uring_register_files_sparse(&ring_, chain_slots_ + file_slots_);
}

// Closes the ring and waits until its last request has ended. io_uring_queue_exit() does not wait for that,
// but the kernel frees the table of files only after the last request. So this function puts the write end of
// a pipe into the table and closes its own descriptor of that end. When the table is freed, poll() reports
// POLLHUP at the read end.
void UringRing::cut_off() {
  std::array<int, 2> pipe_ends{-1, -1};
  const bool has_pipe = file_slots_ > 0 && ::pipe2(pipe_ends.data(), O_CLOEXEC) == 0;
  Fd read_end(pipe_ends[0]);
  Fd write_end(pipe_ends[1]);
  const bool watches_table =
      has_pipe && ::io_uring_register_files_update(&ring_, chain_slots_, &pipe_ends[1], 1) == 1;
  write_end.close();
  ::io_uring_queue_exit(&ring_);
  ready_ = false;
  pollfd hang_up_poll{read_end.get(), POLLIN, 0};
  if (watches_table) retry_eintr([&] { return ::poll(&hang_up_poll, 1, kMaxWaitMs); });
}

}  // namespace penstock
