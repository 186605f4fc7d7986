#include "datagen/codec/zstd_size.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

std::vector<std::byte> noise(size_t count, uint64_t values) {
  std::vector<std::byte> bytes(count);
  const RandomStream random(3, "noise");
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(random.below(i, values));
  return bytes;
}

// The compression ratio of one stream, which contains `bytes` `times` times in a row. The bytes are added in
// pieces of at most `piece` bytes.
double ratio_of(const std::vector<std::byte>& bytes, size_t piece, int times = 1) {
  ZstdSize zstd = ZstdSize::start().value();
  for (int i = 0; i < times; ++i)
    for (size_t at = 0; at < bytes.size(); at += piece)
      EXPECT_TRUE(zstd.add(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at))).ok());
  EXPECT_TRUE(zstd.end_stream().ok());
  return zstd.ratio();
}

class ZstdSizeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto available = zstd_available(); !available.ok()) GTEST_SKIP() << available.error().message();
  }
};

TEST_F(ZstdSizeTest, NoiseDoesNotShrinkAndHalfEmptyBytesHalve) {
  const auto all = noise(1 << 20, 256);
  EXPECT_NEAR(ratio_of(all, 100'000), 1.0, 0.001);
  EXPECT_NEAR(ratio_of(noise(1 << 20, 16), 100'000), 2.0, 0.1);
  EXPECT_EQ(ratio_of({}, 1), 1.0);
}

TEST_F(ZstdSizeTest, PiecesDoNotMatterAndRepetitionIsFound) {
  const auto bytes = noise(300'000, 16);
  EXPECT_NEAR(ratio_of(bytes, 7), ratio_of(bytes, bytes.size()), 0.01);
  EXPECT_GT(ratio_of(noise(300'000, 256), 50'000, 4), 3.0);
}

TEST_F(ZstdSizeTest, StreamsAreIndependent) {
  const auto bytes = noise(50'000, 256);
  ZstdSize zstd = ZstdSize::start().value();
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(zstd.add(bytes).ok());
    EXPECT_TRUE(zstd.end_stream().ok());
  }
  EXPECT_NEAR(zstd.ratio(), 1.0, 0.01);
}

TEST(ZstdSize, FailsInABuildWithoutZstd) {
  if (zstd_available().ok()) GTEST_SKIP() << "this build has zstd";
  EXPECT_EQ(ZstdSize::start().error().code, Errc::unsupported);
  EXPECT_EQ(ZstdSize::start().error().message(), "this build lacks zstd");
}

}  // namespace
}  // namespace penstock
