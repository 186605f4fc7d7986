// Tests the check whether a data set fits on a target: its bytes, its whole blocks, and its number of
// objects.
#include "datagen/target/target_room.hpp"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datagen/generate/generate_target.hpp"
#include "datagen/generate/generate_testing.hpp"
#include "datagen/generate/generation.hpp"
#include "datagen/manifest/manifest.hpp"

namespace penstock {
namespace {

// A tier whose folder does not exist yet, in a tmpfs with at least 1 GiB free; "" if there is no such tmpfs.
std::string tmpfs_tier() {
  struct statfs system {};
  if (::statfs("/dev/shm", &system) != 0 || system.f_type != TMPFS_MAGIC) return "";
  if (std::filesystem::space("/dev/shm").available < uintmax_t{1} << 30U) return "";
  return "posix:/dev/shm/penstock-room-" + std::to_string(::getpid()) + "/none";
}

Generation small_files(uint64_t samples) {
  return plan_generation("cifar10", "files", {}, {.samples = samples}, 7).value();
}

TEST(TargetRoom, IsCountedInWholeBlocks) {
  const FreeSpace space{.bytes = 10, .block_bytes = 4096, .folder_bytes = 0, .inodes = {}};
  EXPECT_EQ(space.bytes_on_device(0), 0U);
  EXPECT_EQ(space.bytes_on_device(1), 4096U);
  EXPECT_EQ(space.bytes_on_device(4096), 4096U);
  EXPECT_EQ(space.bytes_on_device(4097), 8192U);
  EXPECT_EQ(space.bytes_on_device(UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(FreeSpace{}.bytes_on_device(77), 77U);
}

TEST(TargetRoom, OfMemoryAndOfACapacityIsInBytesOnly) {
  Tier memory = tier("room");
  const FreeSpace space = free_space_of(*memory.backend).value();
  EXPECT_GT(space.bytes, 0U);
  EXPECT_EQ(space.block_bytes, 1U);
  EXPECT_FALSE(space.inodes);
  Tier capped =
      open_tier("posix:" + ::testing::TempDir() + "penstock-room,capacity=300000B", kNoNamedTiers).value();
  const FreeSpace capacity = free_space_of(*capped.backend).value();
  EXPECT_EQ(capacity.bytes, 300000U);
  EXPECT_EQ(capacity.block_bytes, 1U);
}

TEST(TargetRoom, WhatFitsInBytesMayNotFitInBlocks) {
  const std::string tier_text = tmpfs_tier();
  if (tier_text.empty()) GTEST_SKIP() << "no tmpfs of a GiB at /dev/shm";
  Tier target = open_tier(tier_text, kNoNamedTiers).value();
  const FreeSpace space = free_space_of(*target.backend).value();
  ASSERT_GE(space.block_bytes, 4096U);
  const Generation few = small_files(10);
  EXPECT_TRUE(check_free_space(target, few, false).ok());
  const uint64_t bytes = few.bytes_expected / 10;
  ASSERT_LT(bytes + bytes / 8, space.block_bytes);
  const Generation many = small_files(space.bytes / (bytes + bytes / 8));
  ASSERT_LT(many.bytes_expected, space.bytes);
  const auto refused = check_free_space(target, many, false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::no_space);
  EXPECT_NE(refused.error().what.find("in whole blocks"), std::string::npos) << refused.error().what;
}

TEST(TargetRoom, FoldersOfAPlanAreThoseOfItsObjects) {
  const auto folders = [](std::string_view recipe, std::string_view format, std::vector<OptionWord> settings,
                          uint64_t samples) {
    return plan_generation(recipe, format, std::move(settings), {.samples = samples}, 7).value().folders();
  };
  EXPECT_EQ(folders("imagenet", "", {}, 200), 200U);
  EXPECT_EQ(folders("imagenet", "", {}, 5000), 1000U);
  EXPECT_EQ(folders("imagenet", "", {{"classes", "20000"}}, 30000), 20000U);
  EXPECT_EQ(folders("imagenet", "", {{"dirs", "flat"}}, 200), 0U);
  EXPECT_EQ(folders("imagenet", "tfrecord", {{"shards", "4"}}, 200), 0U);
  const uint64_t hashed = folders("imagenet", "", {{"dirs", "hash:100"}}, 50);
  EXPECT_GT(hashed, 25U);
  EXPECT_LT(hashed, 50U);
  EXPECT_EQ(folders("imagenet", "", {{"dirs", "hash:100"}}, 100'000), 100U);
  EXPECT_EQ(folders("imagenet", "", {{"dirs", "hash:1"}}, 100'000), 1U);
}

TEST(TargetRoom, InodesAreNamedOnlyIfTheyAreUsedUp) {
  Tier memory = tier("room-full");
  EXPECT_EQ(describe_full_tier(*memory.backend, errno_error(ENOSPC, "cannot make", "x")).what,
            "cannot make 'x'");
}

}  // namespace
}  // namespace penstock
