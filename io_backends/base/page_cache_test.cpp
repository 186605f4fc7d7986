#include "io_backends/base/page_cache.hpp"

#include <fstream>

#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/testing.hpp"
#include "io_backends/base/tier.hpp"

namespace penstock {
namespace {

// On a disk where there is one: what lies in memory cannot be evicted.
class PageCache : public testing::Test {
 protected:
  void SetUp() override {
    if (look_at_path(scratch_.path()).memory) GTEST_SKIP() << "the temporary folder lies in memory";
  }
  std::filesystem::path write(const std::string& name, std::size_t bytes) {
    auto path = scratch_.path() / name;
    std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
    return path;
  }
  FileSet files(std::uint64_t count, const std::string& prefix = "f") {
    const std::string start = (scratch_.path() / prefix).string();
    return {count,
            [start](std::uint64_t i, std::string& out) { out.assign(start).append(std::to_string(i)); }};
  }
  ScratchFolder scratch_;
};

TEST_F(PageCache, EvictsAndWarms) {
  const auto path = write("file", 300'000);
  EXPECT_OK(evict(path));  // its pages are dirty: they go all the same
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

TEST_F(PageCache, AnEmptyFileIsNeither) {
  const auto found = residency(write("empty", 0));
  ASSERT_OK(found);
  EXPECT_EQ(found->fraction(), 0.0);
}

TEST_F(PageCache, WhatIsNotThereIsNamed) {
  const auto path = scratch_.path() / "nothing";
  for (const auto& result : {evict(path), warm(path)}) {
    EXPECT_ERRC(Errc::not_found, result);
    EXPECT_NE(result.error().what.find(path.string()), std::string::npos);
  }
  EXPECT_ERRC(Errc::not_found, residency(path));
}

TEST_F(PageCache, WholeSetsAreProvenFileByFile) {
  constexpr std::uint64_t kFiles = 200;
  for (std::uint64_t i = 0; i < kFiles; ++i) write("f" + std::to_string(i), 5'000);
  for (const unsigned threads : {0U, 1U, 4U}) {
    EXPECT_OK(evict_all(files(kFiles), threads));
    auto found = residency_of(files(kFiles), threads);
    ASSERT_OK(found);
    EXPECT_EQ(found->files, kFiles);
    EXPECT_EQ(found->sum.total_bytes, kFiles * 5'000);
    EXPECT_TRUE(found->cold());
    EXPECT_FALSE(found->warm());
    EXPECT_OK(warm_all(files(kFiles), threads));
    found = residency_of(files(kFiles), threads);
    ASSERT_OK(found);
    EXPECT_TRUE(found->warm());
    EXPECT_FALSE(found->cold());
    EXPECT_EQ(found->unverified_files, 0U);
  }
  // Three warm files of 200 are more than one percent.
  EXPECT_OK(evict_all(files(kFiles), 2));
  EXPECT_OK(warm_all(files(3), 2));
  auto found = residency_of(files(kFiles), 2);
  ASSERT_OK(found);
  EXPECT_FALSE(found->cold());
  EXPECT_OK(residency_of(files(0), 2));
}

TEST_F(PageCache, AMissingFileOfASetIsNamed) {
  write("f0", 10);
  const auto found = residency_of(files(2), 2);
  EXPECT_ERRC(Errc::not_found, found);
  EXPECT_NE(found.error().what.find("f1"), std::string::npos);
  EXPECT_ERRC(Errc::not_found, warm_all(files(2), 2));
  EXPECT_ERRC(Errc::not_found, evict_all(files(2), 2));
}

TEST_F(PageCache, AnInterruptEndsAPass) {
  write("f0", 10);
  simulate_interrupt(2);
  EXPECT_ERRC(Errc::interrupted, residency_of(files(1), 1));
  EXPECT_ERRC(Errc::interrupted, warm_all(files(1), 1));
  simulate_interrupt(0);
}

// A user without rights on somebody else's file gets the truth or no answer, never mincore's "all resident".
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
    const auto sum = residency_of({1, [&](std::uint64_t, std::string& out) { out = path.string(); }}, 1);
    ASSERT_OK(sum);
    EXPECT_EQ(sum->sum.verified, found->verified);
    EXPECT_EQ(sum->unverified_files, found->verified ? 0U : 1U);
    if (!found->verified) {
      EXPECT_FALSE(sum->cold());
      EXPECT_FALSE(sum->warm());
    }
  }));
}

}  // namespace
}  // namespace penstock
