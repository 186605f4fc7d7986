#include "miniapps/pipeline/batch.hpp"

#include <unistd.h>

#include <cstring>
#include <limits>
#include <new>
#include <string>

#include "io_backends/base/units.hpp"

namespace penstock {

std::uint64_t machine_memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

Result<BatchPool> BatchPool::make(const BatchShape& shape, std::uint64_t prefetch) {
  __extension__ using Wide = unsigned __int128;
  const Wide wanted = (static_cast<Wide>(prefetch) + 1) * shape.samples *
                      (shape.slot_bytes != 0 ? shape.slot_bytes : shape.stored_bytes);
  const std::uint64_t memory = machine_memory_bytes();
  const std::string what = "a prefetch queue of " + std::to_string(prefetch) + " batches of " +
                           std::to_string(shape.samples) + " samples";
  if (wanted > memory) {
    return make_error(Errc::exhausted, what + " needs more than this machine's memory of " +
                                           format_size(memory) + ": choose a smaller --prefetch or --batch");
  }
  try {
    BatchPool pool;
    pool.shape_ = shape;
    pool.batches_.resize(static_cast<std::size_t>(prefetch) + 1);
    const std::size_t bytes = shape.samples * shape.slot_bytes;
    for (Batch& batch : pool.batches_) {
      if (bytes == 0) {
        batch.stored.resize(shape.samples);
      } else {
        batch.memory.grow(bytes);
        std::memset(batch.memory.data(), 0, bytes);
      }
      batch.slot_bytes = shape.slot_bytes;
      batch.index.resize(shape.samples);
      batch.label.resize(shape.samples);
      batch.length.resize(shape.samples);
    }
    return pool;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, what + " does not fit in memory (" +
                                           format_size(static_cast<std::uint64_t>(wanted)) +
                                           "): choose a smaller --prefetch or --batch");
  }
}

}  // namespace penstock
