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

// Counts blocks that are all zero, and blocks whose content occurred before. Only one thread at a time may
// use it.
// Memory: it remembers at most `most_blocks` different blocks (about 50 bytes each). If there are more, it
// chooses one more bit of the hashes. It forgets the blocks whose hash has this bit set, about half of them.
// From then on it does not compare blocks with this bit set. It still counts every copy of the blocks
// that it remembers. So the proportion of duplicates among the compared blocks is about that among all
// blocks.
// Comparison: it compares 64-bit hashes, in which every bit depends on every bit of the block. The
// probability that any two of a million different blocks have the same hash is one in thirty million. Blocks
// can be constructed on purpose to have the same hash.
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
