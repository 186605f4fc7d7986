// The trials of power_cut_test.cpp on ext4 and xfs. An ioctl cuts the disk's power (ci/testbed/loop_disk),
// which needs root.
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

  // One trial in new folders; returns whether the power was cut before the training ended.
  bool trial(std::uint64_t n, const Mutant& mutant, Sweep& swept) {
    const std::filesystem::path root = disk_->path() / std::to_string(trials_++);
    for (const char* tier : {"fast", "slow"}) std::filesystem::create_directories(root / tier);
    EXPECT_OK(disk_->sync());
    const auto tiers = [&](const Skips& skips) -> Result<Tiers> {
      PENSTOCK_ASSIGN(Tier fast, open_tier("fast=posix:" + (root / "fast").string()));
      PENSTOCK_ASSIGN(Tier slow, open_tier("slow=posix:" + (root / "slow").string()));
      fast.backend = lying(std::move(fast.backend), skips);
      slow.backend = lying(std::move(slow.backend), skips);
      return Tiers{std::move(fast), std::move(slow)};
    };
    Acknowledged told;
    PowerCut power(n, [&] { EXPECT_OK(disk_->cut()); });
    {
      auto its_own = tiers(mutant.skips);
      EXPECT_OK(its_own);
      its_own->fast.backend = cut_off(std::move(its_own->fast.backend), power);
      its_own->slow.backend = cut_off(std::move(its_own->slow.backend), power);
      static_cast<void>(train(*its_own, mutant, told).ok());
      if (!power.happened()) {
        EXPECT_OK(disk_->cut());
      }
    }
    EXPECT_OK(disk_->restart());
    const auto after = tiers(Mutant().skips);
    EXPECT_OK(after);
    swept.add("operation " + std::to_string(n), check(*after, told));
    return power.happened();
  }
  Sweep sweep(const Mutant& mutant, std::uint64_t stride) {
    Sweep swept;
    for (std::uint64_t n = 1; trial(n, mutant, swept); n += stride) {
    }
    return swept;
  }

 private:
  std::unique_ptr<LoopDisk> disk_;
  std::uint64_t trials_ = 0;
};

TEST_P(OnDisk, PowerCutsLeaveWhatWasAcknowledged) {
  const Sweep swept = sweep({}, 1);
  swept.say(GetParam());
  EXPECT_EQ(swept.bad, 0U) << swept.first;
  EXPECT_GT(swept.points, 100U);
}

// Journals keep the order of names, although POSIX does not require it. So on these file systems some missing
// syncs of folders do no harm.
TEST_P(OnDisk, SyncsThatAreLeftOutAreMissed) {
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
