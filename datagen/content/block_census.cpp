#include "datagen/content/block_census.hpp"

#include <cstring>

#include "io_backends/core/random.hpp"

namespace penstock {

namespace {

// Computes the hash of a block. Four chains of mix64() each take every fourth word of the block. No chain
// waits for another, so the processor computes them in parallel. mix64() gives different results for
// different inputs, and each bit of its input changes half of the bits of its result on average.
uint64_t hash_of(std::span<const std::byte, kBlockBytes> block) {
  std::array<uint64_t, 4> chains{1, 2, 3, 4};
  std::array<uint64_t, 4> words{};
  for (size_t at = 0; at < block.size(); at += sizeof(words)) {
    std::memcpy(words.data(), block.data() + at, sizeof(words));
    for (size_t i = 0; i < chains.size(); ++i) chains[i] = mix64((chains[i] + 1) ^ words[i]);
  }
  uint64_t hash = 0;
  for (const uint64_t chain : chains) hash = mix64((hash + 1) ^ chain);
  return hash;
}

bool is_all_zero(std::span<const std::byte, kBlockBytes> block) {
  return block[0] == std::byte{0} && std::memcmp(block.data(), block.data() + 1, block.size() - 1) == 0;
}

}  // namespace

void BlockCensus::add(std::span<const std::byte, kBlockBytes> block) {
  ++inspected_blocks_;
  if (is_all_zero(block)) {
    ++zero_blocks_;
    return;
  }
  const uint64_t hash = hash_of(block);
  if ((hash & forgotten_mask_) != 0) return;
  ++copies_[hash];
  while (copies_.size() > most_blocks_) {
    forgotten_mask_ = forgotten_mask_ << 1U | 1U;
    std::erase_if(copies_, [&](const auto& entry) { return (entry.first & forgotten_mask_) != 0; });
  }
}

BlockCounts BlockCensus::counts() const {
  BlockCounts out{.inspected_blocks = inspected_blocks_, .zero_blocks = zero_blocks_};
  for (const auto& [hash, copies] : copies_) {
    out.compared_blocks += copies;
    out.duplicate_blocks += copies - 1;
  }
  return out;
}

}  // namespace penstock
