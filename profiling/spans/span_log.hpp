// Collects the spans (span_abi.h) of a run in memory until the run ends. Each thread has a buffer of a fixed
// size.
//
// Threads: only one thread adds to a buffer. Any thread may read it meanwhile.
// Locks: none.
// Memory: allocated when the log is made. Adding a span allocates nothing and reads no clock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "profiling/session_abi.h"

namespace penstock {

// The name of a component: "read", "load", "decode", ...; "" if span_abi.h does not define this number.
std::string_view component_name(unsigned component);

// Converts a time to the form that spans have: nanoseconds of CLOCK_MONOTONIC.
inline int64_t span_ns(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}
uint32_t span_thread();  // thread id of the calling thread; makes a system call

// The spans of one thread. Only one thread at a time may add. Any thread may read at any time, without a
// lock, and sees only whole spans: add() stores the count with release order after it has stored the span,
// and spans() loads the count with acquire order.
class alignas(64) SpanBuffer {
 public:
  // Makes a buffer for `capacity` spans. Writes to all of its memory, so that add() causes no page faults.
  explicit SpanBuffer(size_t capacity) : spans_(capacity) {}

  // Adds a span. If the buffer is full, the span is not stored, but counts as dropped. If the process runs
  // under the profiler, the span is also added to the profiler's session.
  void add(const penstock_span& span) noexcept {
    if (penstock_profile_span != nullptr) [[unlikely]]
      penstock_profile_span(&span);
    const size_t index = span_count_.load(std::memory_order_relaxed);
    if (index == spans_.size()) {
      dropped_spans_.store(dropped_spans_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    spans_[index] = span;
    span_count_.store(index + 1, std::memory_order_release);
  }

  // All spans so far, in the order in which they were added. Another thread may add more meanwhile.
  std::span<const penstock_span> spans() const {
    return std::span(spans_).first(span_count_.load(std::memory_order_acquire));
  }
  uint64_t dropped() const { return dropped_spans_.load(std::memory_order_relaxed); }

 private:
  std::vector<penstock_span> spans_;
  std::atomic<size_t> span_count_{0};
  std::atomic<uint64_t> dropped_spans_{0};
};

// Whether this process runs under the profiler. The profiler then records the spans as well.
inline bool spans_are_profiled() {
  return penstock_profile_span != nullptr;
}

class SpanLog {
 public:
  // Makes one buffer for each element of `capacities`. The element is the number of spans for which the
  // buffer has room. Error: exhausted if memory is short; the message says how many spans all buffers have.
  static Result<std::unique_ptr<SpanLog>> make(const std::vector<size_t>& capacities);

  size_t buffers() const { return buffers_.size(); }
  SpanBuffer& operator[](size_t i) { return *buffers_[i]; }
  const SpanBuffer& operator[](size_t i) const { return *buffers_[i]; }
  uint64_t recorded() const;
  uint64_t dropped() const;

 private:
  SpanLog() = default;
  std::vector<std::unique_ptr<SpanBuffer>> buffers_;
};

}  // namespace penstock
