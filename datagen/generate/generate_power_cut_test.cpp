// Tests data sets on a disk that loses power: at each operation, directly after the end, and after --resume.
// Also on a device that fails to store data.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "datagen/generate/generate_testing.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/testing/forgetful_testing.hpp"
#include "io_backends/testing/power_cut_testing.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

// A small data set with one folder per class, and a companion next to the folders.
const Generation& small_generation() {
  static const Generation generation =
      plan_generation("climate", "", {{"shape", "2,8,8"}}, {.samples = 5}, 7).value();
  return generation;
}

const Tree& expected_tree() {
  static const Tree tree = [] {
    Tier target = tier("generate-power-cut");
    EXPECT_OK(make(target, small_generation()));
    return tree_of(target);
  }();
  return tree;
}

// Checks that the data set is complete. State files may be left next to it, because a power cut may undo
// their removal.
void expect_whole(Tier& target) {
  Tree tree = tree_of(target);
  std::erase_if(tree, [](const auto& one) { return one.first.starts_with(".penstock/generate."); });
  expect_same(tree, expected_tree());
}

// Checks that the data set is complete if it has a manifest, and that --resume completes it in any case.
void expect_whole_or_resumed(Tier& target) {
  const bool corpus = Manifest::load(*target.backend, kManifestName).ok();
  if (corpus) expect_whole(target);
  ASSERT_OK(make(target, small_generation(), 1, true));
  expect_whole(target);
}

TEST(GeneratePowerCut, AtEveryOperationOfAForgetfulDisk) {
  uint64_t cuts = 0;
  uint64_t finished = 0;
  for (uint64_t n = 1; finished == 0; ++n) {
    for (uint64_t kept = 0; kept < 4; ++kept) {
      SCOPED_TRACE("operation " + std::to_string(n) + ", kept " + std::to_string(kept));
      const auto power_on = [&](ForgetfulMachine& machine) {
        machine.power_on(kept == 0 ? Kept::none : Kept::some, n * 8 + kept);
      };
      ForgetfulMachine machine;
      Tier target;
      target.backend = machine.backend("disk");
      machine.cut_at(n);
      const Result<GenerateResult> made = make(target, small_generation(), 1);
      if (made.ok()) ++finished;
      machine.cut();
      power_on(machine);
      if (made.ok()) expect_whole(target);
      expect_whole_or_resumed(target);
      machine.cut();
      power_on(machine);
      expect_whole(target);
      ++cuts;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(cuts, 100U);
}

class GenerateOnDisk : public testing::TestWithParam<const char*> {};

TEST_P(GenerateOnDisk, PowerCutsLeaveAWholeOrAnUnfinishedDataSet) {
  const auto disk = LoopDisk::make(GetParam());
  if (!disk && disk.error().code == Errc::unsupported) GTEST_SKIP() << disk.error().message();
  ASSERT_OK(disk);
  bool finished = false;
  for (uint64_t n = 1; !finished && !HasFailure(); n += 7) {
    SCOPED_TRACE("operation " + std::to_string(n));
    const std::string path = "t=posix:" + ((*disk)->path() / std::to_string(n)).string();
    PowerCut power(n, [&] { EXPECT_OK((*disk)->cut()); });
    {
      Tier target = open_tier(path, kNoNamedTiers).value();
      target.backend = cut_off(std::move(target.backend), power);
      finished = make(target, small_generation(), 1).ok();
    }
    if (!power.happened()) {
      EXPECT_TRUE(finished);
      ASSERT_OK((*disk)->cut());
    }
    ASSERT_OK((*disk)->restart());
    {
      Tier target = open_tier(path, kNoNamedTiers).value();
      if (finished) expect_whole(target);
      expect_whole_or_resumed(target);
      ASSERT_OK((*disk)->cut());
    }
    ASSERT_OK((*disk)->restart());
    Tier target = open_tier(path, kNoNamedTiers).value();
    expect_whole(target);
  }
}

INSTANTIATE_TEST_SUITE_P(Kind, GenerateOnDisk, testing::Values("ext4", "xfs"),
                         [](const auto& row) { return row.param; });

// The first run gets the device's error when it syncs. Later the kernel no longer reports this error, and the
// page cache has the right bytes of all objects. So the second run must not trust the page cache.
TEST(GenerateOnFailingDisk, ResumeKeepsOnlyWhatTheDeviceHas) {
  const auto disk = LoopDisk::make("xfs", "90M");
  if (!disk && disk.error().code == Errc::unsupported) GTEST_SKIP() << disk.error().message();
  ASSERT_OK(disk);
  const Generation large =
      plan_generation("cifar10", "", {{"samples_per_file", "500"}}, {.samples = 15'000}, 7).value();
  const std::string path = "t=posix:" + ((*disk)->path() / "data").string();
  {
    Tier target = open_tier(path, kNoNamedTiers).value();
    const Result<GenerateResult> failed = make(target, large);
    ASSERT_FALSE(failed.ok()) << "the device stores all of it";
    EXPECT_NE(failed.error().what.find("cannot sync"), std::string::npos) << failed.error().what;
    EXPECT_FALSE(target.backend->names().stat(kManifestName).ok());
    ASSERT_OK((*disk)->mend());
    const Result<GenerateResult> resumed = make(target, large, 2, true);
    ASSERT_OK(resumed);
    EXPECT_GT(resumed->damaged_objects, 0U);
    EXPECT_GT(resumed->samples_kept, 0U);
  }
  ASSERT_OK((*disk)->restart());
  Tier target = open_tier(path, kNoNamedTiers).value();
  Tier whole = tier("generate-failing-disk");
  ASSERT_OK(make(whole, large));
  expect_same(tree_of(target), tree_of(whole));
}

// The bytes of a repaired object must be durable before the object gets its name, because no later run reads
// them again.
TEST(GeneratePowerCut, RepairedObjectsAreDurableBeforeTheyAppear) {
  ScratchFolder scratch;
  std::set<std::string> synced;
  const auto record_sync = [&](Synced what, std::string_view name) {
    if (what == Synced::bytes) synced.emplace(name);
    return false;
  };
  Tier target = open_tier("t=posix:" + scratch.path().string(), kNoNamedTiers).value();
  target.backend = lying(std::move(target.backend), record_sync);
  ASSERT_OK(make(target, small_generation(), 1));
  synced.clear();
  for (const auto& [name, bytes] : expected_tree()) {
    if (name.starts_with('.')) continue;
    ASSERT_OK(target.backend->names().remove(name));
    ASSERT_OK(make(target, small_generation(), 1, true));
    EXPECT_TRUE(synced.contains(name)) << name;
  }
  expect_whole(target);
}

}  // namespace
}  // namespace penstock
