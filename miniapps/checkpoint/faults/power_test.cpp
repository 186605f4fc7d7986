// Row 10 of the fault matrix: the power fails at each operation of saving, draining, evicting and pruning.
#include <string>

#include "io_backends/testing/forgetful_testing.hpp"
#include "miniapps/checkpoint/faults/world_testing.hpp"

namespace penstock {
namespace {

class PowerCuts : public FaultMatrix {
 protected:
  void SetUp() override {
    FaultMatrix::SetUp();
    bytes_ = 50'000;
    policy_.keep_on_slow = 2;
    policy_.keep_on_fast = 0;
  }
  TrainingSetup three(std::function<bool()> off) {
    return {.steps = {20, 40, 60}, .slow_options = "", .fast_options = "", .stop_waiting = std::move(off)};
  }
  // Checks that every acknowledged checkpoint exists after the power cut. The disk of the fast tier
  // lost its power too. The callers then repeat the check without the fast tier.
  void expect_all_is_there(uint64_t operation) {
    SCOPED_TRACE("cut at operation " + std::to_string(operation));
    expect_nothing_lost();
    EXPECT_GE(restart_step(), last_acknowledged(Reached::durable));
  }
};

// Memory loses everything at a power cut. It is represented by a simulated disk that loses what was not
// synced.
TEST_F(PowerCuts, Row10OfADiskInMemory) {
  if (disk() != nullptr) GTEST_SKIP() << "on a real disk";
  uint64_t last = 0;
  for (uint64_t n = 1; last == 0; ++n) {
    ASSERT_LT(n, 2000U);
    reset_tiers();
    ForgetfulMachine machine;
    wrap_ = [&](Tier& tier) { tier.backend = machine.backend(tier.name); };
    machine.cut_at(n);
    train(three([&] { return machine.off(); }));
    if (!machine.off()) last = n;
    machine.power_on(n % 2 == 0 ? Kept::none : Kept::some, n);
    expect_all_is_there(n);
    machine.wipe("fast");
    EXPECT_GE(restart_step(), last_acknowledged(Reached::durable)) << "without the fast tier, cut at " << n;
    if (HasFailure()) break;
    forget_stores();
  }
  EXPECT_GT(last, 50U);
}

TEST_F(PowerCuts, Row10OfAFileSystem) {
  if (disk() == nullptr) GTEST_SKIP() << "in memory";
  uint64_t last = 0;
  for (uint64_t n = 1; last == 0; ++n) {
    ASSERT_LT(n, 2000U);
    reset_tiers();
    ASSERT_TRUE(disk()->sync().ok());
    PowerCut power(n, [&] { static_cast<void>(disk()->cut().ok()); });
    wrap_ = [&](Tier& tier) { tier.backend = cut_off(std::move(tier.backend), power); };
    train(three([&] { return power.happened(); }));
    if (!power.happened()) last = n;
    wrap_ = {};
    forget_stores();
    ASSERT_TRUE(disk()->restart().ok());
    expect_all_is_there(n);
    expect_nothing_lost_without_fast_tier();
    forget_stores();
    if (HasFailure()) break;
  }
  EXPECT_GT(last, 50U);
}

}  // namespace
}  // namespace penstock
