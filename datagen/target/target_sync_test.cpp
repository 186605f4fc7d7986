#include "datagen/target/target_sync.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io_backends/files/page_cache.hpp"
#include "io_backends/testing/power_cut_testing.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

TEST(TargetSync, OldKernelsKeepSilentAboutBytesThatWereLost) {
  for (const char* release : {"5.8.0", "5.10.0-28-amd64", "6.1", "6.18.44-fc-v669", "10.0.1"})
    EXPECT_TRUE(syncfs_reports_errors(release)) << release;
  for (const char* release : {"5.7.19-generic", "4.18.0-553.el8_10.x86_64", "3.10.0", "", "6", "x.y", "5."})
    EXPECT_FALSE(syncfs_reports_errors(release)) << release;
}

TEST(TargetSync, MemoryAndObjectStoresHaveNothingToSync) {
  const auto memory = open_tier("mem:target-sync", kNoNamedTiers);
  ASSERT_OK(memory);
  const auto sync = TargetSync::begin(*memory);
  ASSERT_OK(sync);
  EXPECT_EQ(sync->object_durability(), Durability::visible);
  EXPECT_OK(sync->sync());
  EXPECT_OK(sync->drop_from_cache("nothing"));
}

// A device on which writes fail after about 10 MiB; see ci/testbed/loop_disk.
class FailingDisk : public testing::Test {
 protected:
  void SetUp() override {
    auto disk = LoopDisk::make("xfs", "80M");
    if (!disk && disk.error().code == Errc::unsupported) GTEST_SKIP() << disk.error().message();
    ASSERT_OK(disk);
    disk_ = *std::move(disk);
    auto tier = open_tier("t=posix:" + disk_->path().string(), kNoNamedTiers);
    ASSERT_OK(tier);
    tier_.emplace(*std::move(tier));
  }
  void TearDown() override { tier_.reset(); }

  Result<void> write(std::string_view name, Durability durability) {
    const std::vector<std::byte> bytes(size_t{40} << 20U, std::byte{7});
    PENSTOCK_ASSIGN(const auto writer, tier_->backend->create(name));
    PENSTOCK_TRY(writer->append(bytes));
    return writer->publish(durability);
  }
  bool is_whole(std::string_view name) {
    std::vector<std::byte> bytes(size_t{40} << 20U);
    const auto read = tier_->backend->read_object(name, 0, bytes);
    return read.ok() && *read == bytes.size() && bytes == std::vector<std::byte>(bytes.size(), std::byte{7});
  }

  std::unique_ptr<LoopDisk> disk_;
  std::optional<Tier> tier_;
};

TEST_F(FailingDisk, ReportedToAnotherProcessIsReportedToUsToo) {
  const auto sync = TargetSync::begin(*tier_);
  ASSERT_OK(sync);
  ASSERT_OK(write("object", sync->object_durability()));
  EXPECT_FALSE(disk_->sync().ok()) << "the device stores all of it";
  EXPECT_OK(disk_->sync());  // the kernel reports the error only once, so later syncs succeed
  const auto late = TargetSync::begin(*tier_);
  ASSERT_OK(late);
  EXPECT_OK(late->sync());
  EXPECT_FALSE(sync->sync().ok());
  EXPECT_OK(sync->sync());
}

TEST_F(FailingDisk, DroppedObjectsAreReadFromTheDevice) {
  ASSERT_OK(write("object", Durability::leaving));
  EXPECT_FALSE(disk_->sync().ok());
  EXPECT_TRUE(is_whole("object")) << "the page cache has it no longer";
  const auto sync = TargetSync::begin(*tier_);
  ASSERT_OK(sync);
  sync->sync_before_checks();
  EXPECT_FALSE(sync->drop_from_cache("object").ok()) << "bytes were lost, and no open file got the error";
  EXPECT_OK(sync->drop_from_cache("object"));
  EXPECT_FALSE(is_whole("object"));
  EXPECT_FALSE(sync->drop_from_cache("nothing").ok());
}

}  // namespace
}  // namespace penstock
