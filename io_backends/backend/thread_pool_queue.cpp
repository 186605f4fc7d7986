// A Queue over blocking reads, for back ends without asynchronous calls.
// Threads: only one thread at a time calls submit(), reap(), in_flight() and the destructor. `depth` threads
// run work(), each with one blocking read at a time.
// Lock: mutex_ guards waiting_, done_ and wanted_completions_. It is not held during a read.
// Memory: submit() and reap() allocate nothing; a read may. If a read throws, the process ends.
// Ctrl-C: it ends no wait here. reap() waits until reads have returned, and the destructor waits for all
// reads.
// Crash: nothing is written.
#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
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
    for (size_t i = 0; i < depth; ++i)
      threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }

  size_t submit(std::span<const Operation> operations, Start /*start*/) override {
    const size_t accepted = std::min(operations.size(), depth_ - in_flight_);
    {
      const std::lock_guard lock(mutex_);
      for (const Operation& operation : operations.first(accepted)) waiting_.push(operation);
    }
    in_flight_ += accepted;
    for (size_t i = 0; i < accepted; ++i) submitted_.notify_one();
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
  // into done_. After a stop request the loop goes on until waiting_ is empty. So all submitted operations
  // are done before the queue is destroyed.
  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (submitted_.wait(lock, stop, [&] { return waiting_.size() > 0; })) {
      const Operation operation = waiting_.pop();
      lock.unlock();
      Completion completion{operation.tag, perform(backend_, operation)};
      lock.lock();
      done_.push(std::move(completion));
      // Wakes reap() only once, when all completions that it waits for are there.
      if (wanted_completions_ != 0 && done_.size() >= wanted_completions_) finished_.notify_one();
    }
  }

  Backend& backend_;
  const size_t depth_;
  size_t in_flight_ = 0;  // only submit(), reap() and in_flight() use it
  std::mutex mutex_;
  std::condition_variable_any submitted_;
  std::condition_variable finished_;
  Fifo<Operation> waiting_;
  Fifo<Completion> done_;
  size_t wanted_completions_ = 0;
  // The last member, so that the threads are joined before the members that they use are destroyed.
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
