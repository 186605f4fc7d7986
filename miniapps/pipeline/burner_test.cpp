#include "miniapps/pipeline/burner.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Burner> calibrated(double cores) {
  std::unique_ptr<Burner> burner = Burner::make(cores).value();
  EXPECT_OK(burner->calibrate());
  EXPECT_GT(burner->rounds_per_s(), 0.0);
  EXPECT_GE(burner->spread(), 0.0);
  EXPECT_LT(burner->spread(), 1.0);
  return burner;
}

// Other load changes how long the work takes, but not how much work is done.
TEST(Burner, WorkIsTheSameHoweverLongItTakes) {
  const std::unique_ptr<Burner> burner = calibrated(2);
  const auto of_each = uint64_t(std::llround(0.02 * burner->rounds_per_s()));
  ASSERT_OK(burner->work(20ms));
  EXPECT_EQ(burner->rounds(), 2 * of_each);
  std::atomic<bool> over{false};
  {
    std::vector<std::jthread> others;
    for (int i = 0; i < 6; ++i)
      others.emplace_back([&] {
        while (!over) {
        }
      });
    ASSERT_OK(burner->work(20ms));
    over = true;
  }
  EXPECT_EQ(burner->rounds(), 4 * of_each);
  ASSERT_OK(burner->work(0ns));
  EXPECT_EQ(burner->rounds(), 4 * of_each);
}

TEST(Burner, AFractionWorksAndSleepsInEachMillisecond) {
  const std::unique_ptr<Burner> burner = calibrated(0.25);
  const double before = thread_seconds();
  ASSERT_OK(burner->work(40ms));
  const double of_a_slice = std::round(0.25e-3 * burner->rounds_per_s());
  EXPECT_EQ(double(burner->rounds()), 40 * of_a_slice);
  EXPECT_LT(thread_seconds() - before, 0.04) << "it sleeps for three quarters";
}

TEST(Burner, EndsWhenInterrupted) {
  const std::unique_ptr<Burner> burner = calibrated(2.5);
  simulate_interrupt(2);
  EXPECT_ERRC(Errc::interrupted, burner->work(10h), "");
  EXPECT_ERRC(Errc::interrupted, burner->calibrate(), "");
  simulate_interrupt(0);
}

}  // namespace
}  // namespace penstock
