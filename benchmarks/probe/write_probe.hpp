// The write probes of tiers --probe. No tier can skip their bytes: they neither compress nor repeat.
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

// Blocks that neither compress nor repeat, at the speed of memory: random bytes, all of which change from
// block to block (each eight by exclusive or with a number of the block's own). One thread.
class BlockNoise {
 public:
  BlockNoise(std::uint64_t seed, std::uint64_t most_bytes);
  // The next block, from a page's beginning on, valid until the next call; `bytes` at most most_bytes.
  std::span<const std::byte> next(std::uint64_t bytes);

 private:
  Buffer buffer_;
  RandomStream random_;
  std::uint64_t blocks_ = 0;
};

struct WriteShape {
  unsigned writers = 1;            // threads, each with objects of its own
  std::uint64_t objects = 1;       // of a writer, one after another
  std::uint64_t object_bytes = 0;  // at least 1
  std::uint64_t block = 1 << 20;   // of one call
  bool random = false;             // a block after another anywhere in the object, each once (Caps::write_at)
  bool whole = false;              // a pass goes on behind the deadline until it is whole
  bool by_object = false;          // a sample of what run() returns is an object, not a block
  Durability durability = Durability::file;
};

// Object n of all of them is name(n). They stay behind until remove().
class WriteProbe {
 public:
  static constexpr std::uint64_t kMostPasses = 16;  // of one run: a disk wears

  using Name = std::function<std::string(std::uint64_t n)>;
  using Seed =
      std::function<std::uint64_t(unsigned writer)>;  // another for each: some storage keeps equal bytes once
  WriteProbe(Backend& backend, const WriteShape& shape, Name name, const Seed& seed);

  // Passes over all objects until the time limit of `spec`, at most spec.max_passes (0: kMostPasses), each
  // object published with the durability of the shape before the next one of its writer begins. The deadline
  // cuts objects short, at least one block of the first of each writer ahead: what was written by then is
  // published, too, and that time counts. An interrupt is a failure, `interrupted`.
  RunTally run(const ReadSpec& spec);

  // Of all objects those that there are.
  Result<void> remove();

 private:
  using Clock = std::chrono::steady_clock;
  Result<void> write_pass(Clock::time_point until, RunTally& all);
  Result<void> write_object(std::uint64_t n, BlockNoise& noise, Clock::time_point until, LoopDone& done);

  Backend& backend_;
  const WriteShape shape_;
  const Name name_;
  std::vector<BlockNoise> noise_;  // of each writer
};

}  // namespace penstock
