// Defines what a mini-app does to a sample before the sample is in the batch.
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

#include "datagen/codec/picture_warnings.hpp"
#include "io_backends/core/result.hpp"
#include "profiling/session_abi.h"
#include "profiling/spans/span_log.hpp"

namespace penstock {

// Measures how long one worker spends in each part of its work. end_part(part) adds the time since the
// previous call of end_part() or restart() to the time of `part`. Each call reads the clock once (about 25
// ns). Only one thread at a time may use it.
// After record_spans() it also records each part as a span of the sample that set_sample() named last.
class StageTimer {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StageTimer(size_t parts) : spent_ns_(parts, 0) {}

  // Makes the timer also record spans into the buffer, which it borrows. Part 0 is reading; the further parts
  // are the given stages. Call it in the thread that will call end_part().
  void record_spans(SpanBuffer& spans, std::span<const std::string_view> stages);
  void set_sample(uint64_t epoch, uint64_t index) {
    epoch_ = epoch;
    index_ = index;
  }

  void restart() { last_end_ = Clock::now(); }
  // Ends a part and returns the current time. `bytes` is only for the span.
  Clock::time_point end_part(size_t part, uint64_t bytes = 0) {
    const Clock::time_point now = Clock::now();
    spent_ns_[part] += uint64_t((now - last_end_).count());
    if (spans_ != nullptr) add_part_span(part, bytes, now);
    last_end_ = now;
    current_part_ = part + 1;
    return now;
  }
  // Ends the part in which a sample failed: the part that follows the part that ended last.
  void end_failed_part() { end_part(std::min(current_part_, spent_ns_.size() - 1)); }
  // Records a span that is not one of the parts. Does nothing without a span buffer.
  void span(penstock_component component, unsigned detail, Clock::time_point begin, Clock::time_point end,
            bool belongs_to_sample) {
    if (spans_ != nullptr) add_other_span(component, detail, begin, end, belongs_to_sample);
  }
  Clock::time_point last() const { return last_end_; }
  const std::vector<uint64_t>& spent_ns() const { return spent_ns_; }

 private:
  void add_part_span(size_t part, uint64_t bytes, Clock::time_point now);
  void add_other_span(penstock_component component, unsigned detail, Clock::time_point begin,
                      Clock::time_point end, bool belongs_to_sample);

  Clock::time_point last_end_{};
  size_t current_part_ = 0;
  std::vector<uint64_t> spent_ns_;
  SpanBuffer* spans_ = nullptr;
  std::vector<uint16_t> part_components_;  // for each part, the penstock_component of its spans
  uint32_t thread_ = 0;
  uint64_t epoch_ = 0;
  uint64_t index_ = 0;
};

// Part 0 is reading, in every app. The transform's own stages are the parts from kFirstOwnPart on.
inline constexpr size_t kPartRead = 0;
inline constexpr size_t kFirstOwnPart = 1;

// Identifies a sample in an epoch. Random numbers for a sample, such as for its crop, depend only on this key
// and the seed.
struct SampleKey {
  uint64_t epoch = 0;
  uint64_t index = 0;  // index of the sample in the manifest
};

// Turns the stored bytes of a sample into the tensor in its slot. Each worker has an object of its own, so no
// lock is needed. The object reuses its memory for each sample.
class SampleTransform {
 public:
  virtual ~SampleTransform() = default;

  // Fills the whole `slot`. If `stored` is a file of several samples, it fills only as many samples of the
  // slot as the file has. The error is `corrupt` if the sample is not of the kind that the app takes. After
  // an error the slot's content is undefined.
  // Calls timer.end_part(kFirstOwnPart + i) at the end of stage i, in the order of Transform::stages; it ends
  // the last stage before it returns. It may allocate and throw std::bad_alloc, which the loader catches.
  virtual Result<void> apply(const SampleKey& key, std::span<const std::byte> stored,
                             std::span<std::byte> slot, StageTimer& timer) = 0;
  // What the decoder found wrong in the sample that apply() transformed last without an error.
  virtual PictureWarnings warnings() const { return {}; }
};

// Describes how an app transforms its samples. Nothing changes it once a loader has it, so any thread may
// read it.
struct Transform {
  size_t slot_bytes = 0;  // bytes of a sample's tensor in a batch; 0: samples stay as they are stored
  std::string layout{};   // for the record, such as "f32 NHWC 224x224x3"
  std::span<const std::string_view> stages{};  // names of its stages ("decode", "resize"); not owned
  // Makes the transform object of one worker. Null if slot_bytes is 0.
  std::function<Result<std::unique_ptr<SampleTransform>>()> make{};
};

// The transform that leaves samples as they are stored: no stages, no copies.
inline Transform leave_as_stored() {
  return {.layout = "as stored"};
}

}  // namespace penstock
