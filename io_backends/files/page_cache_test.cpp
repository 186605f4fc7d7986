#include "io_backends/files/page_cache.hpp"

#include <fstream>

#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

// Needs a temporary folder on a disk: files in memory cannot be evicted.
class PageCache : public testing::Test {
 protected:
  void SetUp() override {
    if (inspect_path(scratch_.path()).memory) GTEST_SKIP() << "the temporary folder is in memory";
  }
  std::filesystem::path write(const std::string& name, size_t bytes) {
    auto path = scratch_.path() / name;
    std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
    return path;
  }
  ScratchFolder scratch_;
};

TEST_F(PageCache, EvictsAndWarms) {
  const auto path = write("file", 300'000);
  EXPECT_OK(evict(path));  // dirty pages are evicted too
  auto found = residency(path);
  ASSERT_OK(found);
  ASSERT_TRUE(found->verified);
  EXPECT_EQ(found->total_bytes, 300'000U);
  EXPECT_EQ(found->resident_bytes, 0U);
  EXPECT_OK(warm(path));
  found = residency(path);
  ASSERT_OK(found);
  EXPECT_EQ(found->resident_bytes, 300'000U) << "no more than the file has, though its last page is full";
  EXPECT_EQ(found->fraction(), 1.0);
}

TEST_F(PageCache, AnEmptyFileHasNoResidentPart) {
  const auto found = residency(write("empty", 0));
  ASSERT_OK(found);
  EXPECT_EQ(found->fraction(), 0.0);
}

TEST_F(PageCache, ErrorsNameAMissingFile) {
  const auto path = scratch_.path() / "nothing";
  for (const auto& result : {evict(path), warm(path)}) {
    EXPECT_ERRC(Errc::not_found, result);
    EXPECT_NE(result.error().what.find(path.string()), std::string::npos);
  }
  EXPECT_ERRC(Errc::not_found, residency(path));
}

// For files of another user, mincore() reports that all pages are resident. A user without rights must get
// the real state or no answer.
TEST_F(PageCache, SomebodyElsesFileIsUnverifiedOrTrue) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files for somebody else";
  const auto path = write("file", 100'000);
  std::filesystem::permissions(path, std::filesystem::perms(0444));
  ASSERT_OK(evict(path));
  EXPECT_TRUE(as_plain_user([&] {
    const auto found = residency(path);
    ASSERT_OK(found);
    if (found->verified) {
      EXPECT_EQ(found->resident_bytes, 0U);
    }
    EXPECT_OK(evict(path));
    EXPECT_OK(warm(path));
    EXPECT_ERRC(Errc::permission_denied, drop_caches());
  }));
}

}  // namespace
}  // namespace penstock
