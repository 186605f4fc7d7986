#include "profiling/session/kernel_processes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace penstock {
namespace {

TEST(KernelIo, IsReadOfThisProcess) {
  penstock_kernel_io io{};
  ASSERT_TRUE(read_kernel_io(uint32_t(::getpid()), io));
  EXPECT_GT(io.rchar, 0U);
  EXPECT_GT(process_start(uint32_t(::getpid())), 0U);
  EXPECT_EQ(process_start(0), 0U);
}

TEST(MapsFile, AsksForTheWholeName) {
  const auto self = uint32_t(::getpid());
  EXPECT_TRUE(maps_file(self, "libc.so.6"));
  EXPECT_FALSE(maps_file(self, "c.so.6"));
  EXPECT_FALSE(maps_file(self, "libc.so"));
  EXPECT_FALSE(maps_file(0, "libc.so.6"));
}

}  // namespace
}  // namespace penstock
