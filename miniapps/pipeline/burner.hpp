// Occupies processors with a fixed amount of work, as the host's share of a training step does.
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

// What ends at a deadline gets no longer, whatever else this machine does meanwhile. So a stretch of time is
// turned into rounds once, by calibrate(), and from then on as many rounds take what they take. A round is
// arithmetic over 4 KiB of a thread's own: they stay in its processor's first cache, so that nothing but the
// processor limits it.
//
// One thread calls.
class Burner {
 public:
  // That many processors at a time, 0 < cores; what is over a whole number is a share of each millisecond,
  // which the caller's thread sleeps for the rest. Takes one thread less than that, rounded up: the caller
  // burns, too. `exhausted` where there are no more threads.
  static Result<std::unique_ptr<Burner>> make(double cores);
  ~Burner();

  // Looks what all its threads get done at a time, for some 0.3 s in which nothing else should go on. Before
  // work(). Errc::interrupted once interrupted().
  Result<void> calibrate();
  // Of a thread, the mean of all, in the fastest look.
  double rounds_per_s() const { return rounds_per_s_; }
  // That look less the slowest, over it: what else this machine was doing.
  double spread() const { return spread_; }

  // As many rounds on each thread as took so long when it was calibrated (with the sleep that belongs to
  // them). Returns when all are done; Errc::interrupted within some milliseconds once interrupted().
  Result<void> work(std::chrono::nanoseconds idle);
  std::uint64_t rounds() const { return rounds_; }  // that work() has made on all threads

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    std::uint64_t rounds = 0;
    Clock::time_point until = Clock::time_point::max();  // or until then, if that is sooner
  };
  struct Worker;

  explicit Burner(double caller_share);
  void serve(Worker& worker, const std::stop_token& stop);
  void begin(const Job& job);
  void wait_for_all();
  double look(std::chrono::nanoseconds length);
  void work_in_slices(std::chrono::nanoseconds idle);

  const double caller_share_;
  double rounds_per_s_ = 0;
  double spread_ = 0;
  std::uint64_t rounds_ = 0;
  std::chrono::nanoseconds asleep_too_long_{0};  // what sleeps took beyond their ends, to be made up for
  std::mutex mutex_;                             // of the next four
  std::condition_variable_any changed_;
  std::condition_variable_any done_;
  Job job_;
  std::uint64_t number_ = 0;                      // of the job
  std::uint64_t busy_ = 0;                        // threads that have not ended it yet
  std::vector<std::unique_ptr<Worker>> workers_;  // the caller's first
  std::vector<std::jthread> threads_;             // last: joined before what they use dies
};

}  // namespace penstock
