// Counts empty and equal blocks, which storage with deduplication would save.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

namespace penstock {

inline constexpr std::size_t kBlockBytes = 4096;

struct BlockCounts {
  std::uint64_t inspected = 0;
  std::uint64_t zero = 0;       // all bytes are zero
  std::uint64_t compared = 0;   // blocks that are not zero and were compared with others
  std::uint64_t duplicate = 0;  // compared blocks whose content occurred before
};

// Counts blocks that are all zero, and blocks whose content occurred before. Memory is bounded: it remembers
// at most `most` different blocks (about 50 bytes each). Beyond that, it forgets the half whose hash has the
// next bit set, and does not compare such blocks any more. All copies of a remembered block are still
// counted, so the share of duplicates remains that of the whole. One thread.
//
// Blocks are compared by a 64-bit hash, in which every bit depends on every bit of the block. With a million
// different blocks, two are wrongly taken as equal in one of thirty million corpora. The hash does not resist
// forged blocks.
class BlockCensus {
 public:
  static constexpr std::size_t kMostBlocks = std::size_t{1} << 20;
  explicit BlockCensus(std::size_t most = kMostBlocks) : most_blocks_(most) {}

  void add(std::span<const std::byte, kBlockBytes> block);
  BlockCounts counts() const;

 private:
  std::size_t most_blocks_;
  std::uint64_t dropped_mask_ = 0;  // mask: hash bits that must be zero for a block to be remembered
  std::uint64_t inspected_ = 0;
  std::uint64_t zero_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> copies_;  // hash of a block -> number of its copies
};

}  // namespace penstock
