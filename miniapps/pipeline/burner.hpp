// Occupies processors with a fixed amount of work, as a training step does on its host.
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

// The work must get longer when other programs use the processors, so it cannot simply end at a deadline.
// calibrate() measures once how many rounds a span of time takes; work() then always does that many. A round
// is arithmetic over 4 KiB that belong to one thread. They stay in the first cache of its processor, so only
// the processor limits the speed.
//
// One thread makes, uses and destroys it.
class Burner {
 public:
  // Occupies `cores` processors during work(), cores > 0. For a fraction, the caller's thread works for that
  // share of each millisecond and sleeps for the rest. Starts `cores` (rounded up) - 1 threads, since the
  // caller works as well. `exhausted` if no more threads can start.
  static Result<std::unique_ptr<Burner>> make(double cores);
  ~Burner();

  // Measures the rounds per second of all its threads together. Call it before work(). It takes about 0.3 s,
  // in which the process should do nothing else. Errc::interrupted once interrupted().
  Result<void> calibrate();
  // Rounds per second of one thread in the fastest measurement; the mean of all threads.
  double rounds_per_s() const { return rounds_per_s_; }
  // (fastest measurement - slowest) / fastest: shows how much other programs disturbed the measurements.
  double spread() const { return spread_; }

  // Each thread does as many rounds as took the time `duration` during calibrate(), when the machine was
  // idle. For a fraction of a processor the caller also sleeps. Returns when all threads are done.
  // Errc::interrupted within some milliseconds once interrupted().
  Result<void> work(std::chrono::nanoseconds duration);
  uint64_t rounds() const { return total_rounds_; }  // done by work(), on all threads

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    uint64_t rounds = 0;
    Clock::time_point until = Clock::time_point::max();  // ends earlier if this time comes first
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
  // How much later than planned sleeps ended. The next sleeps are shorter by this time.
  std::chrono::nanoseconds overslept_{0};
  std::mutex mutex_;  // protects job_, job_number_ and busy_threads_
  std::condition_variable_any job_changed_;
  std::condition_variable_any job_done_;
  Job job_;
  uint64_t job_number_ = 0;                       // number of the current job; workers start when it changes
  uint64_t busy_threads_ = 0;                     // threads that still work on the current job
  std::vector<std::unique_ptr<Worker>> workers_;  // the first is for the caller's thread
  std::vector<std::jthread> threads_;  // declared last: joined before the members that they use are destroyed
};

}  // namespace penstock
