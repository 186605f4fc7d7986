// Threads: one thread of every rank makes these calls, in the same order on all ranks. A rank that leaves out
// a call blocks the others in theirs. Long work (all_ok with `stop`) has its own thread, which makes no
// collective call.
// Locks: each BackgroundWork has one, for its outcome. None is held during a collective call.
// Memory: every function may allocate.
// Ctrl-C: no collective call ends because of it. all_ok() of long work passes a signal at one rank on to all.
// The work checks for the signal and returns `interrupted`, and then the ranks exchange it as usual.
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

// Packs an error into bytes: its kind, the errno, the text. Success has no bytes. All ranks run the same
// build, so the layout may be that of memory.
std::vector<std::byte> packed(const Result<void>& result) {
  if (result.ok()) return {};
  const Error& error = result.error();
  std::vector<std::byte> bytes(1 + sizeof error.sys_errno + error.what.size());
  bytes[0] = static_cast<std::byte>(error.code);
  std::memcpy(bytes.data() + 1, &error.sys_errno, sizeof error.sys_errno);
  if (!error.what.empty())
    std::memcpy(bytes.data() + 1 + sizeof error.sys_errno, error.what.data(), error.what.size());
  return bytes;
}

Error unpacked(std::span<const std::byte> bytes) {
  Error error;
  error.code = static_cast<Errc>(bytes[0]);
  std::memcpy(&error.sys_errno, bytes.data() + 1, sizeof error.sys_errno);
  bytes = bytes.subspan(1 + sizeof error.sys_errno);
  error.what.resize(bytes.size());
  if (!bytes.empty()) std::memcpy(error.what.data(), bytes.data(), bytes.size());
  return error;
}

// Runs `work` on its own thread, which the destructor joins. The rank's main thread makes and uses it.
class BackgroundWork {
 public:
  // on_threads() turns an exception of the work into an error. If no thread can start, the outcome is set at
  // once. That needs no lock, since no other thread exists then.
  explicit BackgroundWork(const std::function<Result<void>()>& work) {
    try {
      thread_ = std::jthread([this, &work] { finish(on_threads(1, [&](unsigned) { return work(); })); });
    } catch (const std::system_error& error) {
      outcome_ = no_more_threads(error, 1);
    }
  }

  // Returns the outcome, or no value if it is not set within `patience`. The caller uses the reference
  // without the lock: an outcome is set once and never changes.
  const std::optional<Result<void>>& wait(std::chrono::milliseconds patience) {
    static const std::optional<Result<void>> none;
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, patience, [this] { return outcome_.has_value(); }) ? outcome_ : none;
  }

 private:
  // The last step of the thread. It notifies without the lock: the members exist until the thread is joined.
  void finish(Result<void> outcome) {
    {
      const std::lock_guard lock(mutex_);
      outcome_ = std::move(outcome);
    }
    done_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<Result<void>> outcome_;
  std::jthread thread_;  // last: it is joined before what it uses is destroyed
};

}  // namespace

// A rank that failed must call this, too, or the others wait for ever. After an error of the transport the
// rank returns at once, and no collective call may follow on it.
Result<void> all_ok(Communicator& ranks, const Result<void>& mine) {
  if (ranks.size() == 1) return mine;
  PENSTOCK_ASSIGN(const auto all, ranks.gather(packed(mine)));
  std::vector<std::byte> verdict;
  if (ranks.root()) {
    const auto failed =
        std::find_if(all.begin(), all.end(), [](const auto& bytes) { return !bytes.empty(); });
    if (failed != all.end()) {
      Error error = unpacked(*failed);
      if (std::any_of(all.begin(), all.end(), [](const auto& bytes) { return bytes.empty(); }))
        error.what = "on rank " + std::to_string(failed - all.begin()) + " of " + std::to_string(all.size()) +
                     ": " + error.what;
      verdict = packed(error);
    }
  }
  // Broadcast also if no rank failed, so that all ranks make the same calls.
  PENSTOCK_TRY(ranks.broadcast(verdict));
  if (verdict.empty()) return success();
  return unpacked(verdict);
}

// The last byte of the broadcast is 1 for a value and 0 for an error.
Result<std::vector<std::byte>> bytes_of_root(Communicator& ranks, Result<std::vector<std::byte>> roots) {
  if (ranks.size() == 1) return roots;
  std::vector<std::byte> bytes;
  if (ranks.root()) {
    bytes = roots.ok() ? *std::move(roots) : packed(roots.error());
    bytes.push_back(static_cast<std::byte>(roots.ok()));
  }
  PENSTOCK_TRY(ranks.broadcast(bytes));
  const bool ok = bytes.back() != std::byte{0};
  bytes.pop_back();
  if (!ok) return unpacked(bytes);
  return bytes;
}

Result<void> all_ok(Communicator& ranks, const std::function<Result<void>()>& work,
                    const std::function<void()>& stop) {
  if (ranks.size() == 1) return work();
  // One round about every 100 ms: wait, reduce, act. All ranks make the same number of rounds, because each
  // ends the loop on a value that is the result of the reduction on all.
  BackgroundWork background(work);
  while (true) {
    const std::optional<Result<void>>& mine = background.wait(std::chrono::milliseconds(100));
    std::array<std::uint64_t, 3> state{mine ? 0U : 1U, mine && !mine->ok() ? 1U : 0U,
                                       static_cast<std::uint64_t>(interrupt_signal())};
    Result<void> reduced = ranks.all_reduce(std::span<std::uint64_t>(state), Reduction::max);
    // stop() before the return: the destructor of `background` waits for the work.
    if (!reduced.ok()) {
      stop();
      return reduced;
    }
    const auto [working, failed, signal] = state;
    if (failed != 0) stop();
    // Do not replace this rank's own signal, which decides its exit code.
    if (signal != 0 && !interrupted()) simulate_interrupt(static_cast<int>(signal));
    if (working == 0) return all_ok(ranks, *mine);
  }
}

}  // namespace penstock
