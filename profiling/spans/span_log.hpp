// Spans (session_abi.h) of a run, kept in memory until it has ended: one buffer a thread, of a size that is
// fixed before. Adding takes no lock, allocates nothing and reads no clock.
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

// "read", "load", "decode", ...; "" for one that session_abi.h does not know.
std::string_view component_name(unsigned component);

// The clock and the thread of a span.
inline std::int64_t span_ns(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}
std::uint32_t span_thread();  // the caller; a system call

// One thread at a time adds; any thread looks at what is there.
class alignas(64) SpanBuffer {
 public:
  // Touches its memory.
  explicit SpanBuffer(std::size_t capacity) : spans_(capacity) {}

  // Drops and counts what there is no room for. Under the profiler, that gets it as well.
  void add(const penstock_span& span) noexcept {
    if (penstock_profile_span != nullptr) [[unlikely]]
      penstock_profile_span(&span);
    const std::size_t at = kept_.load(std::memory_order_relaxed);
    if (at == spans_.size()) {
      dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    spans_[at] = span;
    kept_.store(at + 1, std::memory_order_release);
  }

  // In the order in which they were added; may grow meanwhile.
  std::span<const penstock_span> spans() const {
    return std::span(spans_).first(kept_.load(std::memory_order_acquire));
  }
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  std::vector<penstock_span> spans_;
  std::atomic<std::size_t> kept_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

// Whether somebody else listens to spans: this process runs under the profiler.
inline bool spans_are_profiled() {
  return penstock_profile_span != nullptr;
}

class SpanLog {
 public:
  // A buffer of that many spans for each entry. exhausted, with the sum, when there is no memory for them.
  static Result<std::unique_ptr<SpanLog>> make(const std::vector<std::size_t>& capacities);

  std::size_t buffers() const { return buffers_.size(); }
  SpanBuffer& operator[](std::size_t i) { return *buffers_[i]; }
  const SpanBuffer& operator[](std::size_t i) const { return *buffers_[i]; }
  std::uint64_t kept() const;
  std::uint64_t dropped() const;

 private:
  SpanLog() = default;
  std::vector<std::unique_ptr<SpanBuffer>> buffers_;
};

}  // namespace penstock
