// Threads: one thread of every rank makes these calls, in the same order on all ranks. If a rank leaves out a
// call, the other ranks wait in that call. all_ok() with `stop` runs its long work on a thread of its own,
// which makes no collective call.
// Locks: each BackgroundWork has one, which guards the outcome of its work. None is held during a collective
// call.
// Memory: every function may allocate.
// Ctrl-C: a signal does not end a collective call. all_ok() with `stop` passes a signal at one rank on to all
// ranks. The work on each rank checks for the signal and returns `interrupted`. all_ok() then exchanges that
// error like any other.
// Crash: the other ranks wait for a dead rank until the launcher ends the job.
#include "io_backends/core/ranks/collectives.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {
namespace {

// Packs an error into bytes: its kind, the errno, the text. Success has no bytes. The errno is copied as it
// is in memory, since all ranks run the same build.
std::vector<std::byte> pack_error(const Result<void>& result) {
  if (result.ok()) return {};
  const Error& error = result.error();
  std::vector<std::byte> bytes(1 + sizeof error.sys_errno + error.what.size());
  bytes[0] = static_cast<std::byte>(error.code);
  std::memcpy(bytes.data() + 1, &error.sys_errno, sizeof error.sys_errno);
  if (!error.what.empty())
    std::memcpy(bytes.data() + 1 + sizeof error.sys_errno, error.what.data(), error.what.size());
  return bytes;
}

Error unpack_error(std::span<const std::byte> bytes) {
  Error error;
  error.code = static_cast<Errc>(bytes[0]);
  std::memcpy(&error.sys_errno, bytes.data() + 1, sizeof error.sys_errno);
  bytes = bytes.subspan(1 + sizeof error.sys_errno);
  error.what.resize(bytes.size());
  if (!bytes.empty()) std::memcpy(error.what.data(), bytes.data(), bytes.size());
  return error;
}

// Runs `work` on its own thread, which the destructor joins. Only the rank's main thread makes and uses a
// BackgroundWork.
class BackgroundWork {
 public:
  // Starts the thread. If no thread can start, the error becomes the outcome at once, without the lock,
  // because no other thread exists then. If the work throws an exception, on_threads() turns it into an
  // error.
  explicit BackgroundWork(const std::function<Result<void>()>& work) {
    try {
      thread_ = std::jthread([this, &work] { finish(on_threads(1, [&](unsigned) { return work(); })); });
    } catch (const std::system_error& error) {
      outcome_ = no_more_threads(error, 1);
    }
  }

  // Returns the outcome. If it is not set within `timeout`, returns a reference to an empty value. The
  // caller may read the result without the lock: once an outcome is set, it never changes.
  const std::optional<Result<void>>& wait(std::chrono::milliseconds timeout) {
    static const std::optional<Result<void>> unset;
    std::unique_lock lock(mutex_);
    return finished_.wait_for(lock, timeout, [this] { return outcome_.has_value(); }) ? outcome_ : unset;
  }

 private:
  // The thread calls this at its end. Stores the outcome and wakes wait(). notify_all() is safe after the
  // lock is released: the destructor joins this thread before it destroys finished_.
  void finish(Result<void> outcome) {
    {
      const std::lock_guard lock(mutex_);
      outcome_ = std::move(outcome);
    }
    finished_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable finished_;
  std::optional<Result<void>> outcome_;
  std::jthread thread_;  // last member: joined before the members that it uses are destroyed
};

}  // namespace

// The ranks send their errors to rank 0, which broadcasts the error of the lowest rank. A rank that failed
// must call this, too, or the others wait for ever. If the transport (MPI) fails, this rank returns at once
// and must make no more collective calls.
Result<void> all_ok(Communicator& ranks, const Result<void>& own_result) {
  if (ranks.size() == 1) return own_result;
  PENSTOCK_ASSIGN(const auto all, ranks.gather(pack_error(own_result)));
  std::vector<std::byte> shared_error;
  if (ranks.root()) {
    const auto first_failed =
        std::find_if(all.begin(), all.end(), [](const auto& bytes) { return !bytes.empty(); });
    if (first_failed != all.end()) {
      Error error = unpack_error(*first_failed);
      if (std::any_of(all.begin(), all.end(), [](const auto& bytes) { return bytes.empty(); }))
        error.what = "on rank " + std::to_string(first_failed - all.begin()) + " of " +
                     std::to_string(all.size()) + ": " + error.what;
      shared_error = pack_error(error);
    }
  }
  // This call is also made if no rank failed, because all ranks must make the same collective calls.
  PENSTOCK_TRY(ranks.broadcast(shared_error));
  if (shared_error.empty()) return success();
  return unpack_error(shared_error);
}

// Rank 0 broadcasts its bytes, or its packed error, and one more byte at the end. That byte is 1 after bytes
// and 0 after an error.
Result<std::vector<std::byte>> bytes_of_root(Communicator& ranks, Result<std::vector<std::byte>> root_bytes) {
  if (ranks.size() == 1) return root_bytes;
  std::vector<std::byte> bytes;
  if (ranks.root()) {
    bytes = root_bytes.ok() ? *std::move(root_bytes) : pack_error(root_bytes.error());
    bytes.push_back(static_cast<std::byte>(root_bytes.ok()));
  }
  PENSTOCK_TRY(ranks.broadcast(bytes));
  const bool has_value = bytes.back() != std::byte{0};
  bytes.pop_back();
  if (!has_value) return unpack_error(bytes);
  return bytes;
}

Result<void> all_ok(Communicator& ranks, const std::function<Result<void>()>& work,
                    const std::function<void()>& stop) {
  if (ranks.size() == 1) return work();
  // Each round of the loop waits up to 100 ms for this rank's work, exchanges the state of all ranks, and
  // acts on that state. All ranks make the same number of rounds: the exchanged state decides when to leave
  // the loop, and it is the same on all ranks.
  BackgroundWork background(work);
  while (true) {
    const std::optional<Result<void>>& own_outcome = background.wait(std::chrono::milliseconds(100));
    std::array<uint64_t, 3> state{own_outcome ? 0U : 1U, own_outcome && !own_outcome->ok() ? 1U : 0U,
                                  uint64_t(interrupt_signal())};
    Result<void> reduced = ranks.all_reduce(std::span<uint64_t>(state), Reduction::max);
    // stop() makes the work end. Without it the return would block, because the destructor of `background`
    // waits for the work.
    if (!reduced.ok()) {
      stop();
      return reduced;
    }
    const auto [working, failed, signal] = state;
    if (failed != 0) stop();
    // A signal from another rank does not replace this rank's own signal, which decides its exit code.
    if (signal != 0 && !interrupted()) simulate_interrupt(int(signal));
    if (working == 0) return all_ok(ranks, *own_outcome);
  }
}

}  // namespace penstock
