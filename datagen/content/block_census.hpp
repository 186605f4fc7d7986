// Counts blocks of zeros and blocks with equal content, which storage with deduplication would store only
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

namespace penstock {

inline constexpr size_t kBlockBytes = 4096;

struct BlockCounts {
  uint64_t inspected_blocks = 0;
  uint64_t zero_blocks = 0;       // blocks whose bytes are all zero
  uint64_t compared_blocks = 0;   // blocks that are not zero and were compared
  uint64_t duplicate_blocks = 0;  // compared blocks whose content occurred before
};

// Counts blocks that are all zero, and blocks whose content occurred before. It remembers at most
// `most_blocks` different blocks (about 50 bytes each), so its memory is bounded. If there are more, it
// forgets those whose hash has the next bit set (one half), and no longer compares such blocks. It still
// counts all copies of a remembered block. So the proportion of duplicates among the compared blocks is about
// that among all blocks. Only one thread at a time may use it.
//
// Blocks are compared by a 64-bit hash, in which every bit depends on every bit of the block. Among a million
// different blocks, the probability that any two have the same hash is one in thirty million. The hash does
// not resist forged blocks.
class BlockCensus {
 public:
  static constexpr size_t kMostBlocks = size_t{1} << 20;
  explicit BlockCensus(size_t most_blocks = kMostBlocks) : most_blocks_(most_blocks) {}

  void add(std::span<const std::byte, kBlockBytes> block);
  BlockCounts counts() const;

 private:
  size_t most_blocks_;
  // A mask of hash bits. A block is remembered only if all these bits of its hash are zero.
  uint64_t forgotten_mask_ = 0;
  uint64_t inspected_blocks_ = 0;
  uint64_t zero_blocks_ = 0;
  std::unordered_map<uint64_t, uint64_t> copies_;  // hash of a block -> number of its copies
};

}  // namespace penstock
