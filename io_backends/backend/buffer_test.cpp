#include "io_backends/backend/buffer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>

namespace penstock {
namespace {

TEST(Buffer, IsAlignedAndKeepsItsMemoryWhenItSuffices) {
  Buffer buffer(5000);
  EXPECT_EQ(buffer.capacity(), 8192U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kBufferAlignment, 0U);
  const std::byte* before = buffer.data();
  buffer.grow(8192);
  EXPECT_EQ(buffer.data(), before);
  buffer.grow(8193);
  EXPECT_GE(buffer.capacity(), 8193U);
  EXPECT_EQ(buffer.first(10).size(), 10U);
}

TEST(Buffer, LargeOnesBeginWithAHugePage) {
  EXPECT_EQ(whole_huge_pages(4096), 4096U);
  EXPECT_EQ(whole_huge_pages(size_t{128} << 10), kHugePageBytes);
  EXPECT_EQ(whole_huge_pages(kHugePageBytes), kHugePageBytes);
  EXPECT_EQ(whole_huge_pages(kHugePageBytes + 1), 2 * kHugePageBytes);
  EXPECT_EQ(whole_huge_pages(SIZE_MAX), SIZE_MAX);
  for (const size_t bytes : {kHugePageBytes, kHugePageBytes + 1, 3 * kHugePageBytes}) {
    Buffer buffer(bytes);
    EXPECT_GE(buffer.capacity(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kHugePageBytes, 0U);
    buffer.first(bytes).back() = std::byte{1};
  }
}

TEST(Buffer, MoreThanAnyMachineHasIsRefusedNotRoundedToNothing) {
  Buffer buffer(1);
  EXPECT_THROW(buffer.grow(SIZE_MAX), std::bad_alloc);
  EXPECT_FALSE(buffer.try_grow(SIZE_MAX));
  EXPECT_EQ(buffer.capacity(), kBufferAlignment);
}

}  // namespace
}  // namespace penstock
