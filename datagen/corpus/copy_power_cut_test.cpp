// Tests copies to a disk that loses power: objects that were promised to be durable must survive, also
// objects of an earlier copy.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "datagen/corpus/copy_engine.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/generate/generate_testing.hpp"
#include "io_backends/testing/forgetful_testing.hpp"
#include "io_backends/testing/power_cut_testing.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

constexpr const char* kSource = "mem:copy-power-cut";

// Small files in folders by class.
const Corpus& corpus() {
  static const Corpus made = [] {
    Tier target = open_tier(kSource, kNoNamedTiers).value();
    const Generation generation =
        plan_generation("imagenet", "files", {{"median", "4KB"}, {"classes", "3"}}, {.samples = 17}, 7)
            .value();
    EXPECT_OK(make(target, generation));
    return open_corpus(kSource, {}).value();
  }();
  return made;
}

Result<CopyOutcome> copy(Tier& to, Durability durability) {
  Corpus from = open_corpus(kSource, {}).value();
  return copy_corpus(from, to, {.threads = 1, .durability = durability});
}

// Whatever a power cut leaves on the disk, the next copy recognises that this copy was started, and continues
// it.
TEST(CopyPowerCut, AnInterruptedCopyIsContinued) {
  ASSERT_EQ(corpus().manifest.samples(), 17U);
  uint64_t finished = 0;
  for (uint64_t n = 1; finished == 0; ++n) {
    for (uint64_t kept = 0; kept < 4; ++kept) {
      SCOPED_TRACE("operation " + std::to_string(n) + ", kept " + std::to_string(kept));
      ForgetfulMachine machine;
      Tier to;
      to.backend = machine.backend("disk");
      machine.cut_at(n);
      if (copy(to, Durability::visible).ok()) ++finished;
      machine.cut();
      machine.power_on(kept == 0 ? Kept::none : Kept::some, n * 8 + kept);
      if (!Manifest::load(*to.backend, kManifestName).ok()) {
        const auto rest = copy(to, Durability::file_and_name);
        ASSERT_OK(rest);
        EXPECT_TRUE(rest->complete);
      }
    }
  }
}

class CopyOnDisk : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_EQ(corpus().manifest.samples(), 17U);
    auto disk = LoopDisk::make(GetParam());
    if (!disk && disk.error().code == Errc::unsupported) GTEST_SKIP() << disk.error().message();
    ASSERT_OK(disk);
    disk_ = *std::move(disk);
  }
  Tier target() const {
    return open_tier("t=posix:" + (disk_->path() / "copy").string(), kNoNamedTiers).value();
  }
  // No file on the disk may be open when this is called.
  void cut_the_power() {
    ASSERT_OK(disk_->cut());
    ASSERT_OK(disk_->restart());
  }
  void expect_whole() {
    Tier to = target();
    Tier from = open_tier(kSource, kNoNamedTiers).value();
    Tree tree = tree_of(to);
    tree.erase(std::string(kCopyingName));  // a removal may be undone by the power cut
    expect_same(tree, tree_of(from));
  }

  std::unique_ptr<LoopDisk> disk_;
};

TEST_P(CopyOnDisk, ObjectsOfAnEarlierCopySurviveToo) {
  {
    Tier to = target();
    ASSERT_OK(copy(to, Durability::visible));
    const auto again = copy(to, Durability::file_and_name);
    ASSERT_OK(again);
    EXPECT_EQ(again->already_there, 17U);
  }
  cut_the_power();
  expect_whole();
}

TEST_P(CopyOnDisk, ObjectsOfAFailedCopySurviveToo) {
  {
    Tier to =
        open_tier("t=posix:" + (disk_->path() / "copy").string() + ",fail=publish:eio@#9", kNoNamedTiers)
            .value();
    ASSERT_FALSE(copy(to, Durability::visible).ok());
  }
  {
    Tier to = target();
    const auto again = copy(to, Durability::file_and_name);
    ASSERT_OK(again);
    EXPECT_GT(again->already_there, 0U);
    EXPECT_GT(again->objects_copied, 0U);
  }
  cut_the_power();
  expect_whole();
}

INSTANTIATE_TEST_SUITE_P(Kind, CopyOnDisk, testing::Values("ext4", "xfs"),
                         [](const auto& row) { return row.param; });

// After the failed first copy the page cache has all bytes, but the device does not.
TEST(CopyOnFailingDisk, OnlyWhatTheDeviceHasIsKept) {
  const auto disk = LoopDisk::make("xfs", "90M");
  if (!disk && disk.error().code == Errc::unsupported) GTEST_SKIP() << disk.error().message();
  ASSERT_OK(disk);
  const std::string source = "mem:copy-failing-disk";
  {
    Tier from = open_tier(source, kNoNamedTiers).value();
    ASSERT_OK(make(
        from, plan_generation("cifar10", "", {{"samples_per_file", "500"}}, {.samples = 15'000}, 7).value()));
  }
  Corpus from = open_corpus(source, {}).value();
  const std::string path = "t=posix:" + ((*disk)->path() / "copy").string();
  {
    Tier to = open_tier(path, kNoNamedTiers).value();
    ASSERT_OK(copy_corpus(from, to, {.threads = 2}));
    EXPECT_FALSE((*disk)->sync().ok()) << "the device stores all of it";
    ASSERT_OK((*disk)->mend());
    const auto again = copy_corpus(from, to, {.threads = 2, .durability = Durability::file_and_name});
    ASSERT_OK(again);
    EXPECT_GT(again->objects_copied, 0U);
    EXPECT_GT(again->already_there, 0U);
  }
  ASSERT_OK((*disk)->restart());
  Tier to = open_tier(path, kNoNamedTiers).value();
  expect_same(tree_of(to), tree_of(from.tier));
}

}  // namespace
}  // namespace penstock
