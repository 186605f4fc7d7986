// Signals: store_signal(), count_continuing() and report_lost_mapping() are the signal handlers. They run on
// any thread at any point. So they allocate nothing, take no lock, and use only lock-free atomics and
// async-signal-safe calls (clock_gettime, write, _exit). A second request to stop, at least 1 s after the
// first, ends the process at once, except SIGXCPU, which the kernel repeats every second.
// Threads: any thread calls the other functions, except catch_interrupts(). Each thread has its own
// ignored_until.
// Lock: none.
// Memory: only check_interrupt() allocates, for the error.
#include "io_backends/core/system/interrupt.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <thread>

namespace penstock {
namespace {

std::atomic<int> caught_signal{0};
std::atomic<int64_t> caught_at_ns{0};
std::atomic<unsigned> continued{0};
static_assert(std::atomic<unsigned>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

// Set once, by catch_interrupts().
sigset_t signals_ignored_before{};
sigset_t mask_before{};

// If not null, this thread ignores a request to stop until the flag at this address becomes true. Only
// IgnoreInterrupt sets the address.
thread_local const std::atomic<bool>* ignored_until = nullptr;

// The handler of signals that ask the process to stop. Stores the number of the first one. If two signals
// arrive at once, only one handler succeeds in the exchange and stores its number.
void store_signal(int signal) {
  constexpr int64_t kSameRequestNs = 1'000'000'000;
  struct timespec now {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ns = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  int64_t first_ns = 0;
  if (caught_at_ns.compare_exchange_strong(first_ns, now_ns)) {
    caught_signal.store(signal);
  } else if (now_ns - first_ns >= kSameRequestNs && signal != SIGXCPU) {
    ::_exit(128 + signal);  // a second request: end at once
  }
}

void count_continuing(int /*signal*/) {
  continued.fetch_add(1, std::memory_order_relaxed);
}

// The handler of SIGBUS. Its message names the usual cause: another process has made a mapped file shorter.
void report_lost_mapping(int /*signal*/) {
  constexpr char kMessage[] =
      "penstock: a memory-mapped file (perhaps a manifest) was truncated during use\n";
  static_cast<void>(::write(STDERR_FILENO, kMessage, sizeof kMessage - 1) < 0);
  ::_exit(1);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = &store_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;
  const auto install = [&](int signal) {
    struct sigaction old_action {};
    if (::sigaction(signal, &action, &old_action) == 0 && old_action.sa_handler == SIG_IGN)
      sigaddset(&signals_ignored_before, signal);
  };
  sigset_t requests{};
  sigemptyset(&requests);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
    sigaddset(&requests, signal);
    install(signal);
    // A program that nohup starts goes on when its terminal is closed.
    if ((signal == SIGHUP || signal == SIGXCPU) && was_ignored(signal)) std::signal(signal, SIG_IGN);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &requests, &mask_before);
  // With SIGXFSZ ignored, a write beyond the file size limit (ulimit -f) fails and does not end the process.
  action.sa_handler = SIG_IGN;
  install(SIGXFSZ);
  action.sa_handler = &report_lost_mapping;
  install(SIGBUS);
  action.sa_handler = &count_continuing;
  action.sa_flags = SA_RESTART;
  install(SIGCONT);
}

bool was_ignored(int signal) {
  return sigismember(&signals_ignored_before, signal) == 1;
}

const sigset_t& signal_mask_before() {
  return mask_before;
}

int interrupt_signal() {
  // A relaxed load is enough, because no other memory depends on the number.
  return caught_signal.load(std::memory_order_relaxed);
}

unsigned times_continued() {
  return continued.load(std::memory_order_relaxed);
}

Result<void> check_interrupt() {
  const int signal = interrupt_signal();
  if (signal == 0 || (ignored_until != nullptr && !ignored_until->load())) return success();
  return make_error(Errc::interrupted, signal == SIGINT    ? "interrupted"
                                       : signal == SIGHUP  ? "ended because its terminal closed (SIGHUP)"
                                       : signal == SIGXCPU ? "ended at the CPU time limit (ulimit -t)"
                                                           : "terminated");
}

Result<void> sleep_until(std::chrono::steady_clock::time_point due) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLongestSleep{50};
  for (auto now = Clock::now(); now < due; now = Clock::now()) {
    PENSTOCK_TRY(check_interrupt());
    std::this_thread::sleep_until(std::min(due, now + kLongestSleep));
  }
  return success();
}

IgnoreInterrupt::IgnoreInterrupt(const std::atomic<bool>& time_is_over) {
  ignored_until = &time_is_over;
}

IgnoreInterrupt::~IgnoreInterrupt() {
  ignored_until = nullptr;
}

void simulate_interrupt(int signal) {
  caught_signal.store(signal);
}

}  // namespace penstock
