// What storage that looks for empty and equal blocks would find.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

namespace penstock {

inline constexpr std::size_t kBlockBytes = 4096;

struct BlockCounts {
  std::uint64_t inspected = 0;
  std::uint64_t zero = 0;       // all bytes zero
  std::uint64_t compared = 0;   // of the others, those that were compared with each other
  std::uint64_t duplicate = 0;  // of the compared: those whose bytes had been there before
};

// Counts blocks that are all zero, and blocks that were there before. Memory is bounded: at most `most`
// different blocks are remembered (some 50 bytes each); when there are more, the half whose hash has the next
// bit set is forgotten and no longer compared. What is left are all copies of every second block, so the
// share of duplicates stays that of the whole. One thread.
//
// Blocks are told apart by 64 bits of hash, of which every bit depends on every bit of the block: among a
// million different blocks two are taken for equal once in thirty million corpora. The hash does not resist
// forged blocks.
class BlockCensus {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 20;
  explicit BlockCensus(std::size_t most = kMost) : most_(most) {}

  void add(std::span<const std::byte, kBlockBytes> block);
  BlockCounts counts() const;

 private:
  std::size_t most_;
  std::uint64_t forgotten_ = 0;  // bits of a hash that must be zero for its block to be remembered
  std::uint64_t inspected_ = 0;
  std::uint64_t zero_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> copies_;  // of each block, by its hash
};

}  // namespace penstock
