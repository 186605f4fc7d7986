#include "miniapps/pipeline/batch.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "io_backends/core/system/cgroup.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

void grow_and_touch(Buffer& buffer, uint64_t bytes) {
  if (bytes == 0) return;
  buffer.grow(size_t(bytes));
  std::memset(buffer.data(), 0, size_t(bytes));
}

Batch touched_batch(size_t samples, size_t slot_bytes) {
  Batch batch;
  batch.slot_bytes = slot_bytes;
  batch.index.resize(samples);
  batch.label.resize(samples);
  batch.length.resize(samples);
  grow_and_touch(batch.memory, samples * slot_bytes);
  return batch;
}

}  // namespace

uint64_t bytes_for_samples() {
  const uint64_t free_bytes = available_memory();
  return free_bytes != 0 ? free_bytes - free_bytes / 16 : std::numeric_limits<uint64_t>::max();
}

Result<void> undo_stored_form(SampleUnpacker& unpacker, uint64_t index, std::string_view name,
                              StoredSample& sample) {
  const auto unpacked = unpacker.open(index, sample.bytes);
  if (!unpacked.ok())
    return make_error(unpacked.error().code, "cannot use '{}': {}", name, unpacked.error().what);
  if (unpacked->data() == sample.bytes.data()) return success();  // it has no form
  sample.memory.grow(unpacked->size());
  const std::span<std::byte> copy = sample.memory.first(unpacked->size());
  std::copy(unpacked->begin(), unpacked->end(), copy.begin());
  sample.bytes = copy;
  return success();
}

void move_sample(Batch& from, size_t from_slot, Batch& to, size_t to_slot) {
  to.index[to_slot] = from.index[from_slot];
  to.label[to_slot] = from.label[from_slot];
  to.length[to_slot] = from.length[from_slot];
  to.filled_at = std::max(to.filled_at, from.filled_at);
  if (from.slot_bytes == 0) {
    std::swap(from.stored[from_slot], to.stored[to_slot]);
  } else {
    std::memcpy(to.slot_memory(to_slot).data(), from.slot(from_slot).data(), from.slot_bytes);
  }
}

Result<BatchPool> BatchPool::make(const BatchShape& shape, uint64_t prefetch) {
  __extension__ using Wide = unsigned __int128;
  constexpr size_t kFactsBytes = sizeof(Batch::index[0]) + sizeof(Batch::label[0]) + sizeof(Batch::length[0]);
  const uint64_t stored_bytes = shape.in_place ? 0 : whole_blocks(shape.stored_bytes);
  const uint64_t sample_bytes =
      shape.slot_bytes != 0 ? shape.slot_bytes : stored_bytes + sizeof(StoredSample);
  const Wide wanted_bytes = (static_cast<Wide>(prefetch) + 1) *
                            (sizeof(Batch) + static_cast<Wide>(shape.samples) * (sample_bytes + kFactsBytes));
  const uint64_t usable_bytes = bytes_for_samples();
  const std::string what = "a prefetch queue of " + std::to_string(prefetch) + " batches of " +
                           std::to_string(shape.samples) + " samples";
  if (wanted_bytes > usable_bytes) {
    return make_error(Errc::exhausted, what + " needs more than the " + format_size(usable_bytes) +
                                           " of available memory: choose a smaller --prefetch or --batch");
  }
  try {
    BatchPool pool;
    pool.shape_ = shape;
    pool.batches_.resize(size_t(prefetch) + 1);
    for (Batch& batch : pool.batches_) {
      batch = touched_batch(shape.samples, shape.slot_bytes);
      batch.stored.resize(shape.slot_bytes == 0 ? shape.samples : 0);
      for (StoredSample& stored_sample : batch.stored) grow_and_touch(stored_sample.memory, stored_bytes);
    }
    return pool;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, what + " does not fit in memory (" +
                                           format_size(uint64_t(wanted_bytes)) +
                                           "): choose a smaller --prefetch or --batch");
  }
}

void BatchPool::free_all_samples() {
  all_samples_ = {};
  batch_to_fill_ = {};
}

Result<void> BatchPool::allocate_all_samples(uint64_t samples, size_t batch) {
  const size_t slot_bytes = shape_.slot_bytes;
  const auto no_memory = [&] {
    return make_error(Errc::exhausted,
                      std::to_string(samples) + " samples of " + format_size(slot_bytes) +
                          " do not fit in memory, where this app holds them: use fewer or smaller samples");
  };
  // Frees the old memory before bytes_for_samples() is called, which then counts it as free.
  free_all_samples();
  if (samples > bytes_for_samples() / std::max<size_t>(1, slot_bytes)) return no_memory();
  try {
    all_samples_ = touched_batch(size_t(samples), slot_bytes);
    batch_to_fill_ = touched_batch(batch, slot_bytes);
    return success();
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

}  // namespace penstock
