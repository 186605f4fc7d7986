// Makes a back end slower, to test how programs behave on a slower tier. Sets Caps::emulated.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/options.hpp"

namespace penstock {

// Models a pipe through which bytes pass at a given rate, and computes when they have passed. Any thread may
// call it.
//
// Requests pass one after the other at the given rate.
// Without a latency: after an idle time, as many bytes as pass in up to 10 ms pass at once.
// With a latency: nothing passes at once. Each request first waits for the latency, during which other
// requests may wait or pass. If a caller woke up later than its due time, a later request that finds the pipe
// idle starts earlier by that lateness, but by at most 10 ms.
class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit TokenBucket(uint64_t bytes_per_s,  // 0: no limit
                       std::chrono::nanoseconds latency = std::chrono::nanoseconds(0))
      : bytes_per_s_(bytes_per_s), latency_ns_(latency.count()) {}

  // Returns the time when `bytes`, requested at `now`, have passed after all earlier requests. The result is
  // never before `now` + latency.
  Time pass(uint64_t bytes, Time now);
  // Tells the bucket that a caller waited for `due` but woke up late, at `now`. Later requests that find the
  // pipe idle then start earlier by that lateness. Without a latency this does nothing, because an idle pipe
  // then saves up its flow in any case.
  void add_lateness(Time due, Time now);

  static constexpr std::chrono::milliseconds kBurst{10};

 private:
  // Subtracts up to `max_ns` nanoseconds from lateness_ns_, and returns how many.
  int64_t take_lateness(int64_t max_ns);

  const uint64_t bytes_per_s_;
  const int64_t latency_ns_;
  // the time at which all requests so far will have passed the pipe
  std::atomic<int64_t> free_at_ns_{INT64_MIN};
  std::atomic<int64_t> lateness_ns_{0};  // lateness that no later request has taken yet; at most kBurst
};

struct Throttling {
  uint64_t read_bytes_per_s = 0;  // 0: no limit
  uint64_t write_bytes_per_s = 0;
  std::chrono::nanoseconds latency{0};

  bool has_limits() const { return read_bytes_per_s != 0 || write_bytes_per_s != 0 || latency.count() > 0; }
  static Throttling from_options(const Options& tier_options);
};

// Wraps a back end so that every operation on an object or a folder takes at least `latency`, and the bytes
// of all threads together pass at no more than the given rates (TokenBucket). A waiting call returns
// `interrupted` within 50 ms of a signal that asks to stop. In a Queue each operation has its own due time,
// counted from submit(), and reap() waits until then. So a deeper queue hides the latency.
std::unique_ptr<Backend> throttled(std::unique_ptr<Backend> inner, const Throttling& throttling);

}  // namespace penstock
