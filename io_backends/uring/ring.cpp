// Threads: the thread that owns the ring calls set_up() and cut_off(). The kernel works on the requests
// meanwhile.
// Lock: none.
// Memory: only set_up() allocates: the ring and its table of files. No function throws.
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

#include "io_backends/core/system/fd.hpp"

namespace penstock {
namespace {

constexpr unsigned kMostEntries = 4096;       // the most requests of one submit
constexpr unsigned kMostCompletions = 65536;  // the most completions that the kernel allows
constexpr unsigned kMostTableFiles = 1024;    // slots of the table for opened objects
constexpr unsigned kSqpollIdleMs = 1000;
constexpr int kGoneWithinMs = 30'000;

}  // namespace

int UringRing::create(unsigned entries, unsigned completions, unsigned flags) {
  io_uring_params params{};
  params.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL | flags;
  params.cq_entries = completions;
  params.sq_thread_idle = kSqpollIdleMs;
  const int result = ::io_uring_queue_init_params(entries, &ring_, &params);
  ready_ = result == 0;
  if (!ready_) return -result;
  constexpr unsigned kWanted = IORING_FEAT_CQE_SKIP | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE;
  return (ring_.features & kWanted) == kWanted ? 0 : ENOSYS;
}

int UringRing::set_up(std::size_t depth, bool sqpoll) {
  const auto entries = static_cast<unsigned>(std::min<std::size_t>(3 * depth, kMostEntries));
  // The kernel rounds `entries` up to a power of two, and refuses fewer completions than that.
  const auto completions = static_cast<unsigned>(
      std::min<std::size_t>(std::max<std::size_t>(2 * depth + 1, std::bit_ceil(entries)), kMostCompletions));
  // With Linux 6.1 and later, this thread processes completions only when it asks for them.
  const unsigned best =
      sqpoll ? IORING_SETUP_SQPOLL : IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  int failed = create(entries, completions, best);
  if (failed == EINVAL && !sqpoll) failed = create(entries, completions, IORING_SETUP_COOP_TASKRUN);
  if (failed == EINVAL && !sqpoll) failed = create(entries, completions, 0);
  if (failed != 0) return failed;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::uint64_t room = limit.rlim_cur > depth ? limit.rlim_cur - depth : 0;
  table_files_ = static_cast<unsigned>(std::bit_floor(std::min<std::uint64_t>(room, kMostTableFiles)));
  chains_ = static_cast<unsigned>(depth);
  return -::io_uring_register_files_sparse(&ring_, chains_ + table_files_);
}

// Closing a ring does not wait for its requests. But the kernel frees the table of files only after the last
// request. So the write end of a pipe is put into the table and closed everywhere else. The read end gets a
// hang-up when the table is freed.
void UringRing::cut_off() {
  std::array<int, 2> ends{-1, -1};
  const bool piped = table_files_ > 0 && ::pipe2(ends.data(), O_CLOEXEC) == 0;
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const bool kept = piped && ::io_uring_register_files_update(&ring_, chains_, &ends[1], 1) == 1;
  write_end.close();
  ::io_uring_queue_exit(&ring_);
  ready_ = false;
  pollfd hung_up{read_end.get(), POLLIN, 0};
  if (kept) retry_eintr([&] { return ::poll(&hung_up, 1, kGoneWithinMs); });
}

}  // namespace penstock
