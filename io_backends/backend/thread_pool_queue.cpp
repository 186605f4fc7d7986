// A Queue over blocking reads, for back ends without asynchronous calls.
// Threads: only one thread at a time calls submit(), reap(), in_flight() and the destructor. `depth` threads
// run work(), each with one blocking read at a time.
// Lock: mutex_ guards waiting_, done_, wanted_completions_, idle_threads_ and is_ending_. It is not held
// during a read.
// Memory: submit() and reap() allocate nothing; a read may. If a read throws, the process ends.
// Ctrl-C: it ends no wait here. reap() waits until reads have returned, and the destructor waits for all
// reads.
// Crash: nothing is written.
#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "io_backends/backend/fifo.hpp"
#include "io_backends/backend/queue.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {
namespace {

class ThreadPoolQueue final : public Queue {
 public:
  ThreadPoolQueue(Backend& backend, size_t depth)
      : backend_(backend), depth_(depth), waiting_(depth), done_(depth) {
    threads_.reserve(depth);
    try {
      for (size_t i = 0; i < depth; ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {
      end_threads();
      throw;
    }
  }
  ~ThreadPoolQueue() override { end_threads(); }

  size_t submit(std::span<const Operation> operations, Start /*start*/) override {
    const size_t accepted = std::min(operations.size(), depth_ - in_flight_);
    size_t woken = 0;
    {
      const std::lock_guard lock(mutex_);
      for (const Operation& operation : operations.first(accepted)) waiting_.push(operation);
      // The others take the next operation when theirs is done.
      woken = std::min(accepted, idle_threads_);
      idle_threads_ -= woken;
    }
    in_flight_ += accepted;
    for (size_t i = 0; i < woken; ++i) submitted_.notify_one();
    return accepted;
  }

  size_t reap(std::span<Completion> out, size_t at_least) override {
    const size_t wanted = std::min({at_least, in_flight_, out.size()});
    std::unique_lock lock(mutex_);
    wanted_completions_ = wanted;
    finished_.wait(lock, [&] { return done_.size() >= wanted; });
    wanted_completions_ = 0;
    const size_t count = std::min(out.size(), done_.size());
    for (size_t i = 0; i < count; ++i) out[i] = done_.pop();
    in_flight_ -= count;
    return count;
  }

  size_t in_flight() const override { return in_flight_; }

 private:
  // The loop of each thread of the pool: takes an operation from waiting_, does it, and puts its completion
  // into done_. When the queue is to end, the loop goes on until waiting_ is empty. So all submitted
  // operations are done before the queue is destroyed.
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      while (waiting_.size() == 0 && !is_ending_) {
        ++idle_threads_;
        submitted_.wait(lock);
      }
      if (waiting_.size() == 0) return;
      const Operation operation = waiting_.pop();
      lock.unlock();
      Completion completion{operation.tag, perform(backend_, operation)};
      lock.lock();
      done_.push(std::move(completion));
      // Wakes reap() only once, when all completions that it waits for are there, and without the lock, which
      // reap() needs at once.
      if (wanted_completions_ == 0 || done_.size() < wanted_completions_) continue;
      wanted_completions_ = 0;
      lock.unlock();
      finished_.notify_one();
      lock.lock();
    }
  }

  void end_threads() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    submitted_.notify_all();
    threads_.clear();  // joins them
  }

  Backend& backend_;
  const size_t depth_;
  size_t in_flight_ = 0;  // only submit(), reap() and in_flight() use it
  std::mutex mutex_;
  std::condition_variable submitted_;
  std::condition_variable finished_;
  Fifo<Operation> waiting_;
  Fifo<Completion> done_;
  size_t wanted_completions_ = 0;
  // How many threads wait for submitted_ and were not woken for an operation. One that wakes without a reason
  // is counted twice, which costs no more than a needless wake-up.
  size_t idle_threads_ = 0;
  bool is_ending_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace

Result<std::unique_ptr<Queue>> thread_pool_queue(Backend& backend, size_t depth) {
  PENSTOCK_TRY(check_queue_depth(depth));
  try {
    return std::make_unique<ThreadPoolQueue>(backend, depth);
  } catch (const std::system_error& error) {
    return no_more_threads(error, depth, "a smaller --depth (of tiers: --depths)");
  }
}

}  // namespace penstock
