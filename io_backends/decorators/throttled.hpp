// A back end made slower: to try what a slower tier would do, where none is at hand. Says Caps::emulated.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/options.hpp"

namespace penstock {

// Hands out moments at which bytes have passed a pipe of a given rate. Without a latency it saves up at most
// 10 ms of its flow while nobody asks. With one it is a device that does one thing after the other: a caller
// alone has his latency and his bytes behind each other, whatever he did before, and many wait for their
// latencies together; made up for is but what they woke too late, of at most 10 ms. Any thread.
class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit TokenBucket(std::uint64_t bytes_per_s,  // 0: no limit
                       std::chrono::nanoseconds latency = std::chrono::nanoseconds(0))
      : bytes_per_s_(bytes_per_s), latency_ns_(latency.count()) {}

  // When `bytes` that were asked for at `now` have passed, behind all that were asked for before; never
  // before the latency has.
  Time pass(std::uint64_t bytes, Time now);
  // Somebody waited for `due`, and woke at `now`: later requests that find the pipe idle are brought forward
  // by what that was too late. Without a latency there is nothing to do, as all idleness is saved up.
  void woke(Time due, Time now);

  static constexpr std::chrono::milliseconds kBurst{10};

 private:
  // Nanoseconds of what was too late, taken out of it: as many as there are, and no more than `at_most`.
  std::int64_t take_of_late(std::int64_t at_most);

  const std::uint64_t bytes_per_s_;
  const std::int64_t latency_ns_;
  std::atomic<std::int64_t> free_at_ns_{INT64_MIN};  // when the pipe has passed all that it was given
  std::atomic<std::int64_t> late_ns_{0};             // not made up for yet, at most kBurst
};

struct Throttling {
  std::uint64_t read_bytes_per_s = 0;  // 0: no limit
  std::uint64_t write_bytes_per_s = 0;
  std::chrono::nanoseconds latency{0};

  bool any() const { return read_bytes_per_s != 0 || write_bytes_per_s != 0 || latency.count() > 0; }
  static Throttling from(const Options& tier_options);
};

// Every call across the seam takes at least `latency`, and bytes pass at most at the rates given, over all
// threads together (TokenBucket). Calls that wait give up with `interrupted` within 50 ms of a SIGINT. In a
// Queue every operation has its own moment, counted from submit(), and a completion waits in reap() until
// then, so that depth hides latency.
std::unique_ptr<Backend> throttled(std::unique_ptr<Backend> inner, const Throttling& throttling);

}  // namespace penstock
