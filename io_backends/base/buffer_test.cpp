#include "io_backends/base/buffer.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace penstock {
namespace {

TEST(Buffer, IsAlignedAndKeepsItsMemoryWhenItSuffices) {
  Buffer buffer(5000);
  EXPECT_EQ(buffer.capacity(), 8192U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kBufferAlignment, 0U);
  const std::byte* before = buffer.data();
  buffer.grow(8192);
  EXPECT_EQ(buffer.data(), before);
  buffer.grow(8193);
  EXPECT_GE(buffer.capacity(), 8193U);
  EXPECT_EQ(buffer.first(10).size(), 10U);
}

TEST(Buffer, MoreThanAnyMachineHasIsRefusedNotRoundedToNothing) {
  Buffer buffer(1);
  EXPECT_THROW(buffer.grow(SIZE_MAX), std::bad_alloc);
  EXPECT_EQ(buffer.capacity(), kBufferAlignment);
}

TEST(Pool, LendsEachItemOnceAndTakesItBack) {
  int made = 0;
  Pool<int> pool(2, [&] { return made++; });
  auto first = pool.take();
  auto second = pool.take();
  EXPECT_NE(*first, *second);
  EXPECT_FALSE(pool.try_take());
  const int number = *first;
  first.release();
  auto again = pool.try_take();
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, number);
}

TEST(Pool, AWaitingTakerGetsWhatAnotherReturns) {
  Pool<int> pool(1, [] { return 42; });
  auto lease = pool.take();
  int got = 0;
  std::thread taker([&] { got = *pool.take(); });
  lease.release();
  taker.join();
  EXPECT_EQ(got, 42);
}

}  // namespace
}  // namespace penstock
