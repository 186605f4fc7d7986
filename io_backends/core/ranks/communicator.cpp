// Threads: a SignalsForAll has its own thread, which makes no collective call.
// Lock: only the local mutex of pass_signals_on(), for its timed wait.
// Memory: pass_signals_on() itself allocates nothing. MPI may allocate in report_signal() and heard_signal().
// Ctrl-C: a signal does not end a collective call. A SignalsForAll passes the first signal at one rank on to
// all ranks. It ignores later signals.
// Crash: the other ranks wait for a dead rank until the launcher ends the job.
#include "io_backends/core/ranks/communicator.hpp"

#include <condition_variable>
#include <mutex>
#include <system_error>

#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

// The Communicator of a job with one process. There is no other rank to wait for. Any thread may call it.
class SingleProcess final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int rank_on_node() const override { return 0; }
  Result<void> barrier() override { return success(); }
  Result<void> all_reduce(std::span<double>, Reduction) override { return success(); }
  Result<void> all_reduce(std::span<uint64_t>, Reduction) override { return success(); }
  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> bytes) override {
    return std::vector<std::vector<std::byte>>{{bytes.begin(), bytes.end()}};
  }
  Result<void> broadcast(std::vector<std::byte>&) override { return success(); }
  Result<ClockOffset> clock_offset() override { return ClockOffset{}; }
  void report_signal(int) override {}
  int heard_signal() override { return 0; }
  bool wait_for_all(std::chrono::milliseconds) override { return true; }
  void abandon(int) override {}
};

// The loop of the thread of a SignalsForAll. It passes one signal on and returns: this rank's signal goes to
// the other ranks, and another rank's signal goes to this process. So a second signal is not passed on. The
// loop also ends when the destructor stops the thread.
// The mutex is only needed for the timed wait. No other thread takes it, so it may be held during the calls
// to `ranks`.
void pass_signals_on(Communicator& ranks, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopping;
  std::unique_lock lock(mutex);
  do {
    // `own_signal` is a signal that this process itself got. It is never the signal of another rank, because
    // the next line ends the loop for that one.
    if (const int own_signal = interrupt_signal(); own_signal != 0) return ranks.report_signal(own_signal);
    if (const int received_signal = ranks.heard_signal(); received_signal != 0)
      return simulate_interrupt(received_signal);
  } while (
      !stopping.wait_for(lock, stop, std::chrono::milliseconds(100), [&] { return stop.stop_requested(); }));
}

}  // namespace

SignalsForAll::SignalsForAll(Communicator& ranks) {
  if (ranks.size() == 1) return;
  try {
    thread_ = std::jthread([&ranks](const std::stop_token& stop) { pass_signals_on(ranks, stop); });
  } catch (const std::system_error&) {
    // Without this thread each rank sees only its own signal. all_ok() with `stop` still passes it on to the
    // others.
  }
}

std::unique_ptr<Communicator> single_process() {
  return std::make_unique<SingleProcess>();
}

}  // namespace penstock
