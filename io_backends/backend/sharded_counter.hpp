// Counters that many threads add to without sharing a cache line.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "io_backends/backend/backend.hpp"

namespace penstock {

// Counts the bytes that a back end has read and written. Adding is one relaxed add on the thread's own cache
// line. Threads share lines if more than 64 threads of the process ever add. sum() is exact when no thread is
// adding. A thread gets a number when it first adds to any counter; in every counter that number chooses the
// thread's cache line.
class MovedCounter {
 public:
  void add_read(uint64_t bytes) { my_shard().read.fetch_add(bytes, std::memory_order_relaxed); }
  void add_written(uint64_t bytes) { my_shard().written.fetch_add(bytes, std::memory_order_relaxed); }

  MovedBytes sum() const {
    MovedBytes total;
    for (const Shard& shard : shards_) {
      total.read += shard.read.load(std::memory_order_relaxed);
      total.written += shard.written.load(std::memory_order_relaxed);
    }
    return total;
  }

 private:
  static constexpr size_t kShards = 64;
  struct alignas(64) Shard {
    std::atomic<uint64_t> read{0};
    std::atomic<uint64_t> written{0};
  };

  Shard& my_shard() {
    static std::atomic<size_t> next_index{0};
    thread_local const size_t index = next_index.fetch_add(1, std::memory_order_relaxed) % kShards;
    return shards_[index];
  }

  std::array<Shard, kShards> shards_;
};

}  // namespace penstock
