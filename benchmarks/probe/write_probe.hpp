// The write probes of `tiers --probe`. The bytes that they write cannot be compressed, and no block repeats.
// So a tier must really store all of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/read/read_engine.hpp"
#include "datagen/yardsticks/read_plan.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {

// Makes blocks that cannot be compressed and do not repeat, as fast as memory allows. A buffer has random
// bytes. To make a block, every 8 of them are XORed with a random number that is new for each block. Only one
// thread may use it.
class BlockNoise {
 public:
  BlockNoise(uint64_t seed, uint64_t most_bytes);
  // Makes the next block of `bytes` bytes (at most `most_bytes`), aligned to a page. It is valid until the
  // next call.
  std::span<const std::byte> next(uint64_t bytes);

 private:
  Buffer buffer_;
  RandomStream random_;
  uint64_t blocks_ = 0;
};

struct WriteShape {
  unsigned writers = 1;             // number of threads; each writes objects of its own
  uint64_t objects_per_writer = 1;  // how many objects one writer writes, one after another
  uint64_t object_bytes = 0;        // bytes of each object, at least 1
  uint64_t block_bytes = 1 << 20;   // bytes of one write call
  bool random_order = false;        // writes the blocks in random order, each once (needs Caps::write_at)
  bool whole_passes = false;        // a pass that has started is finished, even after the deadline
  bool count_objects = false;       // in the tally of run(), one sample is an object instead of a block
  Durability durability = Durability::file;
};

// Writes objects as `shape` says, and measures the rate. name(n) gives the name of object n, counted over all
// writers. The objects remain until remove().
class WriteProbe {
 public:
  // At most this many passes in one run, because writes wear out a disk.
  static constexpr uint64_t kMostPasses = 16;

  using ObjectName = std::function<std::string(uint64_t n)>;
  // Gives each writer its seed. Seeds must differ, because some storage deduplicates equal bytes.
  using WriterSeed = std::function<uint64_t(unsigned writer)>;
  WriteProbe(Backend& backend, const WriteShape& shape, ObjectName name, const WriterSeed& seed);

  // Writes all objects, pass after pass, until the time limit of `spec` or after spec.max_passes passes (0:
  // kMostPasses).
  // A writer publishes each object, with the durability of the shape, before it starts the next one. At the
  // time limit (unless whole_passes is set) it stops writing its current object, and publishes the part that
  // is written. The measured time includes this call of publish(). Even if the limit is very short, a writer
  // writes one block of its first object.
  // After an interrupt, run() fails with `interrupted`.
  RunTally run(const ReadSpec& spec);

  // Removes all objects of the probe. An object that does not exist is no error.
  Result<void> remove();

 private:
  using Clock = std::chrono::steady_clock;
  Result<void> write_pass(Clock::time_point deadline, RunTally& total);
  Result<void> write_object(uint64_t n, BlockNoise& noise, Clock::time_point deadline, LoopDone& done);

  Backend& backend_;
  const WriteShape shape_;
  const ObjectName name_;
  std::vector<BlockNoise> noise_;  // one for each writer
};

}  // namespace penstock
