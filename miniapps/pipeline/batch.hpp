// Batches: what the accelerator consumes, and the fixed pool that they are recycled from.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// What is left here for samples to be held in, but for a sixteenth that everything else may want; an
// allocation of more could succeed and end the process later.
std::uint64_t memory_for_samples();

// The shape of a batch in memory: `samples` slots of `slot_bytes` each, one behind the other without gaps, so
// that the whole is one tensor whose outermost dimension is the sample. With `slot_bytes` 0 samples are as
// they are stored: each in memory of its own, some `stored_bytes` each, or `in_place`, where the back end has
// them.
struct BatchShape {
  std::size_t samples = 0;
  std::size_t slot_bytes = 0;
  std::uint64_t stored_bytes = 0;
  bool in_place = false;  // needs Caps::zero_copy; why_copied() says when not

  bool operator==(const BatchShape&) const = default;
};

// A sample as it is stored. Its bytes are in `memory`, or where the back end has them.
struct StoredSample {
  std::span<const std::byte> bytes;
  Buffer memory;
  std::unique_ptr<Reader> reader;  // of bytes in place: the object's, if that is not held open by others
};

// One batch. `memory` is aligned to kBufferAlignment. The vectors have one entry a slot.
struct Batch {
  Buffer memory;
  std::span<const std::byte> elsewhere{};  // where the slots lie instead, one behind another, if they do
  std::vector<StoredSample> stored;        // only with slot_bytes 0
  std::size_t slot_bytes = 0;
  std::vector<std::uint64_t> index;             // of the sample in the manifest
  std::vector<std::uint32_t> label;             // kNoLabel where there is none
  std::vector<std::uint64_t> length;            // bytes of the sample as stored
  std::uint64_t epoch = 0;                      // counts from 0
  std::chrono::steady_clock::time_point ready;  // when its last slot was filled

  std::size_t samples() const { return index.size(); }
  std::span<const std::byte> slot(std::size_t i) const {
    return slot_bytes == 0 ? stored[i].bytes : tensor().subspan(i * slot_bytes, slot_bytes);
  }
  // To be written. Needs slot_bytes.
  std::span<std::byte> room(std::size_t i) {
    return memory.first(samples() * slot_bytes).subspan(i * slot_bytes, slot_bytes);
  }
  // All slots. Needs slot_bytes.
  std::span<const std::byte> tensor() const {
    return elsewhere.empty() ? memory.first(samples() * slot_bytes) : elsewhere;
  }
};

// From a slot of one batch to a slot of another of the same shape; what `to` had there may be in `from` then.
void move_sample(Batch& from, std::size_t from_slot, Batch& to, std::size_t to_slot);

// A fixed number of batches. Its memory is touched when it is made, because the first touch of a page costs
// more than filling it and would be charged to the first batches (memory of samples as they are stored has
// `stored_bytes` then, grows with larger ones, and is recycled, too; of those in place there is none). Lent
// to one stage at a time, which it must outlive.
class BatchPool {
 public:
  // `prefetch` + 1 batches: those ahead, and the one that the accelerator has. exhausted, with the sum, when
  // that is more than there is left here.
  static Result<BatchPool> make(const BatchShape& shape, std::uint64_t prefetch);

  const BatchShape& shape() const { return shape_; }
  std::size_t size() const { return batches_.size(); }
  Batch& operator[](std::size_t i) { return batches_[i]; }

 private:
  BatchPool() = default;
  BatchShape shape_;
  std::vector<Batch> batches_;
};

}  // namespace penstock
