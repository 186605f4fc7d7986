// Occupies processors, as the host's share of a training step does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "io_backends/base/result.hpp"

namespace penstock {

// One thread calls.
class Burner {
 public:
  // So many processors at a time, 0 < cores; what is over a whole number is a share of each millisecond.
  // Takes one thread less than that, rounded up: the caller burns, too. `exhausted` where there are no more
  // threads.
  static Result<std::unique_ptr<Burner>> make(double cores);
  ~Burner();

  // Burns until `deadline` and returns then; Errc::interrupted within some milliseconds once interrupted().
  Result<void> until(std::chrono::steady_clock::time_point deadline);

 private:
  explicit Burner(double caller_share) : caller_share_(caller_share) {}
  void work(const std::stop_token& stop);

  const double caller_share_;
  std::mutex mutex_;  // of the two below
  std::condition_variable_any told_;
  std::uint64_t round_ = 0;
  std::chrono::steady_clock::time_point deadline_;
  std::vector<std::jthread> threads_;  // last: joined before what they use dies
};

}  // namespace penstock
