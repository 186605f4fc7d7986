#include "io_backends/core/system/descriptor_limit.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

TEST(DescriptorLimit, IsRaisedToTheHardLimit) {
  EXPECT_TRUE(in_child_process([] {
    const rlimit before{64, 200};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int time = 0; time < 2; ++time) {
      raise_descriptor_limit();
      rlimit after{};
      ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
      EXPECT_EQ(after.rlim_cur, 200U);
      EXPECT_EQ(after.rlim_max, 200U);
    }
  }));
}

}  // namespace
}  // namespace penstock
