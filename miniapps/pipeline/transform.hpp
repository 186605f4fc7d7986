// What a mini-app does to a sample on its way into the batch.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "profiling/session_abi.h"
#include "profiling/spans/span_log.hpp"

namespace penstock {

// Times the parts of one worker's day, back to back: end_part(part) charges everything since the last call to
// `part`. One clock read a call, some 25 ns. One thread. With a buffer, each part is also a span there,
// of the sample that was named last.
class StageTimer {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StageTimer(std::size_t parts) : spent_ns_(parts, 0) {}

  // The parts are reading and those stages. Borrows; call it in the thread that ends the parts.
  void follow(SpanBuffer& spans, std::span<const std::string_view> stages);
  void sample(std::uint64_t epoch, std::uint64_t index) {
    epoch_ = epoch;
    index_ = index;
  }

  void restart() { last_ = Clock::now(); }
  // `bytes` are for the span.
  Clock::time_point end_part(std::size_t part, std::uint64_t bytes = 0) {
    const Clock::time_point now = Clock::now();
    spent_ns_[part] += static_cast<std::uint64_t>((now - last_).count());
    if (spans_ != nullptr) note(part, bytes, now);
    last_ = now;
    under_way_ = part + 1;
    return now;
  }
  // A sample failed in the part that follows the last one that ended: the time is that part's.
  void end_failed_part() { end_part(std::min(under_way_, spent_ns_.size() - 1)); }
  // A span of this thread besides the parts; nothing without a buffer.
  void span(penstock_component component, unsigned detail, Clock::time_point begin, Clock::time_point end,
            bool of_sample) {
    if (spans_ != nullptr) note_span(component, detail, begin, end, of_sample);
  }
  Clock::time_point last() const { return last_; }
  const std::vector<std::uint64_t>& spent_ns() const { return spent_ns_; }

 private:
  void note(std::size_t part, std::uint64_t bytes, Clock::time_point now);
  void note_span(penstock_component component, unsigned detail, Clock::time_point begin,
                 Clock::time_point end, bool of_sample);

  Clock::time_point last_{};
  std::size_t under_way_ = 0;
  std::vector<std::uint64_t> spent_ns_;
  SpanBuffer* spans_ = nullptr;
  std::vector<std::uint16_t> components_;
  std::uint32_t thread_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t index_ = 0;
};

// The parts of a worker's time that every app has come first; those of the transform follow.
inline constexpr std::size_t kPartRead = 0;
inline constexpr std::size_t kPartFirstOwn = 1;

// Which sample it is, for what is drawn at random.
struct SampleKey {
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;  // in the manifest
};

// From stored bytes to one slot of the batch. One thread; each worker has its own, with everything reused
// from sample to sample.
class SampleTransform {
 public:
  virtual ~SampleTransform() = default;

  // Fills `slot` whole (of a file: as far as its samples go), or fails: corrupt when the sample is not what
  // the app takes. timer.end_part(kPartFirstOwn + i) ends its i-th stage, in the order of
  // Transform::stages; the last one ends before it returns. After an error the slot's content is undefined.
  virtual Result<void> apply(const SampleKey& key, std::span<const std::byte> stored,
                             std::span<std::byte> slot, StageTimer& timer) = 0;
};

// How an app treats its samples. Immutable once a loader has it; any thread.
struct Transform {
  std::size_t slot_bytes = 0;                  // of one sample in a batch; 0: it is left as it is stored
  std::string layout{};                        // for the record: "f32 NHWC 224x224x3"
  std::span<const std::string_view> stages{};  // of its transform: "decode", "resize"; not owned
  std::function<Result<std::unique_ptr<SampleTransform>>()>
      make{};  // one for a worker; null where slot_bytes is 0
};

// Samples as they are stored, whatever they are: no stages, no copies.
inline Transform leave_as_stored() {
  return {.layout = "as stored"};
}

}  // namespace penstock
