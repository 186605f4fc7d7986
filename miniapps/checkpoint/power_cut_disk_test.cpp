// The power-cut tests on ext4 and xfs, whose power is cut by an ioctl (ci/testbed/loop_disk). Needs root.
#include "miniapps/checkpoint/power_cut_trial_testing.hpp"

namespace penstock {
namespace {

class OnDisk : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto disk = LoopDisk::make(GetParam());
    if (!disk && disk.error().code == Errc::unsupported) GTEST_SKIP() << disk.error().message();
    ASSERT_OK(disk);
    disk_ = *std::move(disk);
  }

  // Runs one trial in folders of its own. Returns whether the power cut happened.
  bool trial(uint64_t n, const Mutant& mutant, Sweep& swept) {
    const std::filesystem::path root = disk_->path() / std::to_string(trials_++);
    for (const char* tier : {"fast", "slow"}) std::filesystem::create_directories(root / tier);
    EXPECT_OK(disk_->sync());
    const auto tiers = [&](const Skips& skips) -> Result<Tiers> {
      PENSTOCK_ASSIGN(Tier fast, open_tier("fast=posix:" + (root / "fast").string(), kNoNamedTiers));
      PENSTOCK_ASSIGN(Tier slow, open_tier("slow=posix:" + (root / "slow").string(), kNoNamedTiers));
      fast.backend = lying(std::move(fast.backend), skips);
      slow.backend = lying(std::move(slow.backend), skips);
      return Tiers{std::move(fast), std::move(slow)};
    };
    Acknowledged acknowledged;
    PowerCut power(n, [&] { EXPECT_OK(disk_->cut()); });
    {
      auto its_own = tiers(mutant.skips);
      EXPECT_OK(its_own);
      its_own->fast.backend = cut_off(std::move(its_own->fast.backend), power);
      its_own->slow.backend = cut_off(std::move(its_own->slow.backend), power);
      static_cast<void>(train(*its_own, mutant, acknowledged).ok());
      if (!power.happened()) {
        EXPECT_OK(disk_->cut());
      }
    }
    EXPECT_OK(disk_->restart());
    const auto after = tiers(Mutant().skips);
    EXPECT_OK(after);
    swept.add("operation " + std::to_string(n), check(*after, acknowledged));
    return power.happened();
  }
  Sweep sweep(const Mutant& mutant, uint64_t stride) {
    Sweep swept;
    for (uint64_t n = 1; trial(n, mutant, swept); n += stride) {
    }
    return swept;
  }

 private:
  std::unique_ptr<LoopDisk> disk_;
  uint64_t trials_ = 0;
};

TEST_P(OnDisk, AcknowledgedCheckpointsSurvivePowerCuts) {
  const Sweep swept = sweep({}, 1);
  swept.say(GetParam());
  EXPECT_EQ(swept.bad, 0U) << swept.first;
  EXPECT_GT(swept.points, 100U);
}

// The journals of these file systems order names, which POSIX does not require. So some missing syncs of
// folders cannot be noticed there.
TEST_P(OnDisk, TestsNoticeOmittedSyncs) {
  const std::set<std::string> hidden{"no_tmp_dir_fsync", "no_new_parent_fsync", "no_grandparent_fsync",
                                     "no_root_fsync"};
  for (const Mutant& mutant : mutants()) {
    if (hidden.contains(mutant.name) && !full()) continue;
    const Sweep swept = sweep(mutant, full() ? 1 : 5);
    swept.say(std::string(GetParam()) + ", " + mutant.name);
    if (!hidden.contains(mutant.name)) {
      EXPECT_GT(swept.bad, 0U) << mutant.name << " does no harm";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kind, OnDisk, testing::Values("ext4", "xfs"),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace penstock
