// Occupies processors with a fixed amount of work. A real training also works on the host during each step.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// Occupies some processors for a given time by doing a fixed amount of work. If other programs use the
// processors, the work must take longer, so it cannot simply end at a deadline. Instead calibrate() measures
// once how many rounds fit into a span of time, and work() always does that many.
// A round is arithmetic over 4 KiB that belong to one thread. They fit in the first-level cache of its
// processor, so only the processor limits the speed.
//
// Only one thread makes, uses and destroys a Burner.
class Burner {
 public:
  // Makes a burner that occupies `cores` processors during work(); cores > 0. Since the caller's thread works
  // as well, it starts one thread fewer than `cores` (rounded up). `exhausted` if no more threads can start.
  // If `cores` is not a whole number, the caller's thread occupies the fraction: it works for that share of
  // each millisecond and sleeps for the rest.
  static Result<std::unique_ptr<Burner>> make(double cores);
  ~Burner();

  // Measures how many rounds per second the burner's threads do while all of them work. Call it before
  // work(). It takes about 0.3 s, in which the process should do nothing else. After Ctrl-C it returns
  // Errc::interrupted.
  Result<void> calibrate();
  // Rounds per second of one thread, the mean of all threads, in the fastest of the measurements.
  double rounds_per_s() const { return rounds_per_s_; }
  // (fastest measurement - slowest) / fastest: shows how much other programs disturbed the measurements.
  double spread() const { return spread_; }

  // Works for about `duration`: each thread does as many rounds as a thread did in such a time during
  // calibrate(), when the machine was idle. If `cores` is not a whole number, the caller's thread does only
  // its share of the rounds and sleeps for the rest (see make()). Returns when all threads are done.
  // After Ctrl-C it returns Errc::interrupted within some milliseconds.
  Result<void> work(std::chrono::nanoseconds duration);
  uint64_t rounds() const { return total_rounds_; }  // done by work(), on all threads

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    uint64_t rounds = 0;
    Clock::time_point until = Clock::time_point::max();  // the job ends at this time even if rounds are left
  };
  struct Worker;

  explicit Burner(double caller_share);
  void serve(Worker& worker, const std::stop_token& stop);
  void begin(const Job& job);
  void wait_for_all();
  double measure_rate(std::chrono::nanoseconds length);
  void work_in_slices(std::chrono::nanoseconds duration);

  const double caller_share_;
  double rounds_per_s_ = 0;
  double spread_ = 0;
  uint64_t total_rounds_ = 0;
  // How much longer the sleeps so far took than was asked for. The next sleeps are shorter by this time.
  std::chrono::nanoseconds overslept_{0};
  std::mutex mutex_;  // protects job_, job_number_ and busy_threads_
  std::condition_variable_any job_changed_;
  std::condition_variable_any job_done_;
  Job job_;
  uint64_t job_number_ = 0;                       // number of the current job; workers start when it changes
  uint64_t busy_threads_ = 0;                     // threads that still work on the current job
  std::vector<std::unique_ptr<Worker>> workers_;  // workers_[0] is for the caller's thread
  std::vector<std::jthread> threads_;  // declared last: joined before the members that they use are destroyed
};

}  // namespace penstock
