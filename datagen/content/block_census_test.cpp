#include "datagen/content/block_census.hpp"

#include <gtest/gtest.h>

#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

using Block = std::array<std::byte, kBlockBytes>;

// Makes a block of random bytes, which is different for each number.
Block block(uint64_t number) {
  Block bytes{};
  const RandomStream random(1, number);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random.bits(i));
  return bytes;
}

TEST(BlockCensus, FindsEmptyAndEqualBlocks) {
  BlockCensus census;
  for (const uint64_t number : {1U, 2U, 3U, 2U, 2U}) census.add(block(number));
  census.add(Block{});
  census.add(Block{});
  const BlockCounts counts = census.counts();
  EXPECT_EQ(counts.inspected_blocks, 7U);
  EXPECT_EQ(counts.zero_blocks, 2U);
  EXPECT_EQ(counts.compared_blocks, 5U);
  EXPECT_EQ(counts.duplicate_blocks, 2U);
}

TEST(BlockCensus, OneBitAnywhereMakesAnotherBlock) {
  BlockCensus census;
  const Block first = block(1);
  census.add(first);
  for (size_t bit = 0; bit < kBlockBytes * 8; ++bit) {
    Block other = first;
    other[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    census.add(other);
  }
  Block last_byte{};
  last_byte.back() = std::byte{1};
  census.add(last_byte);
  const BlockCounts counts = census.counts();
  EXPECT_EQ(counts.compared_blocks, kBlockBytes * 8 + 2);
  EXPECT_EQ(counts.duplicate_blocks, 0U);
  EXPECT_EQ(counts.zero_blocks, 0U);
}

TEST(BlockCensus, KeepsTheShareOfCopiesInLittleMemory) {
  constexpr uint64_t kDifferent = 4000;
  BlockCensus census(64);
  for (uint64_t i = 0; i < 2 * kDifferent; ++i) census.add(block(i % kDifferent));
  const BlockCounts counts = census.counts();
  EXPECT_EQ(counts.inspected_blocks, 2 * kDifferent);
  EXPECT_LE(counts.compared_blocks, 2U * 64);
  EXPECT_GE(counts.compared_blocks, 16U);
  EXPECT_EQ(counts.duplicate_blocks * 2, counts.compared_blocks) << "each block that is left came twice";
}

}  // namespace
}  // namespace penstock
