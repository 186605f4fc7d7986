// A batch of samples for the accelerator, and the pool that holds a fixed number of batches for the whole
// run.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "datagen/format/form_reader.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// How many bytes of memory samples may use: 15/16 of the free memory; the rest is left for everything else.
// Without this limit an allocation could succeed, and the kernel could kill the process later. No limit if
// the free memory is unknown.
uint64_t bytes_for_samples();

// The shape of a batch in memory: `samples` slots of `slot_bytes` each, without gaps. So a batch is one
// tensor whose outermost dimension is the sample. If `slot_bytes` is 0, samples are not tensors but keep the
// form in which they are stored. Then each sample is copied into memory of its own, of about `stored_bytes`.
// With `in_place` it is not copied, but used in the memory of the back end.
struct BatchShape {
  size_t samples = 0;
  size_t slot_bytes = 0;
  uint64_t stored_bytes = 0;
  bool in_place = false;  // needs Caps::zero_copy and why_copied() == ""

  bool operator==(const BatchShape&) const = default;
};

// A sample in the form in which it is stored. Its bytes are in `memory` or in the memory of the back end.
struct StoredSample {
  std::span<const std::byte> bytes;
  Buffer memory;
  // Keeps a sample in the memory of the back end valid. Null if the bytes are in `memory`, or if the loader's
  // HeldObjects keeps the sample's object open.
  std::unique_ptr<Reader> reader;
};

// If sample number `index` of the manifest has a form, replaces the stored bytes in `sample` by the sample's
// own bytes. An error names the object `name`.
Result<void> undo_stored_form(SampleUnpacker& unpacker, uint64_t index, std::string_view name,
                              StoredSample& sample);

// One batch. `memory` is aligned to kBufferAlignment. Each vector has one entry for each slot.
struct Batch {
  Buffer memory;
  std::span<const std::byte> view{};  // if not empty: the tensors of all slots, used instead of `memory`
  std::vector<StoredSample> stored;   // the samples as stored, if slot_bytes is 0
  size_t slot_bytes = 0;
  std::vector<uint64_t> index;                      // index of the sample in the manifest
  std::vector<uint32_t> label;                      // kNoLabel if the sample has none
  std::vector<uint64_t> length;                     // bytes of the sample as stored
  uint64_t epoch = 0;                               // counts from 0
  std::chrono::steady_clock::time_point filled_at;  // when the last of its slots was filled

  size_t samples() const { return index.size(); }
  std::span<const std::byte> slot(size_t i) const {
    return slot_bytes == 0 ? stored[i].bytes : tensor().subspan(i * slot_bytes, slot_bytes);
  }
  // The memory of slot i, for writing. Needs slot_bytes > 0.
  std::span<std::byte> slot_memory(size_t i) {
    return memory.first(samples() * slot_bytes).subspan(i * slot_bytes, slot_bytes);
  }
  // The memory of all slots, one after another. Needs slot_bytes > 0.
  std::span<const std::byte> tensor() const {
    return view.empty() ? memory.first(samples() * slot_bytes) : view;
  }
};

// Moves a sample from a slot of the batch `from` into a slot of `to`, a batch of the same shape. Afterwards
// from_slot contains either a copy of that sample or the old sample of to_slot. Does not allocate.
void move_sample(Batch& from, size_t from_slot, Batch& to, size_t to_slot);

// A fixed number of batches, which are filled again and again. make() touches their memory before the run:
// the first touch of a page costs more than filling it, and would slow the first batches.
// If slot_bytes is 0, each sample has `stored_bytes` of memory at first, which grows for a larger sample.
// Samples that are used in place have no such memory.
// Only one BatchSource at a time may use the pool, and the pool must outlive it. The pool has no lock: the
// loader decides which thread owns which slot (loader.cpp).
class BatchPool {
 public:
  // Makes `prefetch` + 1 batches: those that are prepared ahead, and the one that the accelerator uses. If
  // they need more memory than is free, the error is `exhausted`, with the number of free or of needed bytes.
  static Result<BatchPool> make(const BatchShape& shape, uint64_t prefetch);

  const BatchShape& shape() const { return shape_; }
  size_t size() const { return batches_.size(); }
  Batch& operator[](size_t i) { return batches_[i]; }

  // Allocates memory for an app that holds all samples in memory: all_samples() with `samples` slots, and
  // batch_to_fill() with `batch` slots. Touches this memory, so that no step of the run pays for the first
  // touch. `exhausted` if there is not enough memory.
  Result<void> allocate_all_samples(uint64_t samples, size_t batch);
  void free_all_samples();  // frees what allocate_all_samples() allocated
  Batch& all_samples() { return all_samples_; }
  // The batch into which the samples of the next step are copied from all_samples().
  Batch& batch_to_fill() { return batch_to_fill_; }

 private:
  BatchPool() = default;
  BatchShape shape_;
  std::vector<Batch> batches_;
  Batch all_samples_;
  Batch batch_to_fill_;
};

}  // namespace penstock
