#include "datagen/codec/jpeg_intervals.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "datagen/codec/jpeg.hpp"
#include "io_backends/base/random.hpp"

namespace penstock {
namespace {

constexpr FlipGroups kSingly{.spacing = 64, .together = 1, .within = 64};

YccImage noisy(std::uint32_t width, std::uint32_t height, std::uint64_t seed) {
  YccImage image;
  image.reshape(width, height);
  const RandomStream random(seed, "noisy picture");
  std::uint64_t n = 0;
  for (std::vector<std::uint8_t>& plane : image.planes)
    for (std::size_t i = 0; i < plane.size(); ++i)
      plane[i] = static_cast<std::uint8_t>(100 + (i % 97) / 2 + random.below(n++, 40));
  return image;
}

std::vector<std::byte> encode(const YccImage& image, int percent, unsigned rows) {
  JpegEncoder encoder;
  const std::span<const std::byte> jpeg = encoder.encode(image, percent, rows).value();
  return {jpeg.begin(), jpeg.end()};
}

Image decode(std::span<const std::byte> jpeg) {
  JpegDecoder decoder;
  Image image;
  const Result<void> decoded = decoder.decode(jpeg, image);
  EXPECT_TRUE(decoded.ok()) << decoded.error().message();
  return image;
}

TEST(JpegIntervals, AreWhereTheEncoderPutThem) {
  const std::vector<std::byte> jpeg = encode(noisy(100, 16 * 7, 1), 20, 2);
  const JpegLayout layout = jpeg_layout(jpeg).value();
  ASSERT_EQ(layout.intervals.size(), 4U);
  EXPECT_EQ(layout.intervals.front().begin, layout.header_bytes);
  for (std::size_t i = 0; i + 1 < layout.intervals.size(); ++i)
    EXPECT_EQ(layout.intervals[i].begin + layout.intervals[i].bytes + 2, layout.intervals[i + 1].begin);
  EXPECT_EQ(layout.intervals.back().begin + layout.intervals.back().bytes + 2, jpeg.size());
  EXPECT_EQ(
      std::to_integer<int>(jpeg[layout.height_at]) * 256 + std::to_integer<int>(jpeg[layout.height_at + 1]),
      16 * 7);
  EXPECT_EQ(jpeg_layout(encode(noisy(100, 50, 1), 20, 0)).value().intervals.size(), 1U);
}

TEST(JpegIntervals, EveryFlippedBitLeavesAValidPictureThatDiffers) {
  const std::vector<std::byte> jpeg = encode(noisy(96, 64, 2), 10, 2);
  const Image before = decode(jpeg);
  const JpegLayout layout = jpeg_layout(jpeg).value();
  const FlippableBits finder = FlippableBits::of(jpeg).value();
  std::size_t flipped = 0;
  for (const JpegInterval& interval : layout.intervals) {
    const auto bits = finder.find(jpeg, interval, 12, kSingly).value();
    ASSERT_FALSE(bits.empty());
    for (std::size_t i = 1; i < bits.size(); ++i) EXPECT_GE(bits[i].at, bits[i - 1].at + kSingly.spacing);
    std::vector<std::byte> all = jpeg;
    for (const FlippableBit& bit : bits) {
      std::vector<std::byte> one = jpeg;
      one[bit.at] ^= std::byte{bit.mask};
      all[bit.at] ^= std::byte{bit.mask};
      const Image after = decode(one);
      EXPECT_NE(after.pixels, before.pixels) << "byte " << bit.at;
      int most = 0;
      for (std::size_t p = 0; p < after.pixels.size(); ++p)
        most = std::max(most, std::abs(int{after.pixels[p]} - int{before.pixels[p]}));
      EXPECT_LE(most, 60) << "one step of one wave";
      ++flipped;
    }
    EXPECT_NE(decode(all).pixels, before.pixels);
  }
  EXPECT_GT(flipped, 20U);
}

TEST(JpegIntervals, BitsOfAGroupLieTogetherAndInBytesOfTheirOwn) {
  const std::vector<std::byte> jpeg = encode(noisy(320, 64, 4), 10, 4);
  const JpegInterval interval = jpeg_layout(jpeg).value().intervals.front();
  constexpr FlipGroups kGroups{.spacing = 256, .together = 3, .within = 32};
  const auto bits = FlippableBits::of(jpeg)->find(jpeg, interval, 80, kGroups).value();
  std::size_t whole = 0;
  for (std::size_t i = 0; i < bits.size();) {
    const std::size_t first = bits[i].at;
    std::size_t together = 1;
    for (; ++i < bits.size() && bits[i].at < first + kGroups.spacing; ++together) {
      EXPECT_GT(bits[i].at, bits[i - 1].at);
      EXPECT_LT(bits[i].at, first + kGroups.within + 8) << "zeros that are stuffed between them do not count";
    }
    EXPECT_LE(together, kGroups.together);
    whole += together == kGroups.together ? 1 : 0;
  }
  EXPECT_GT(whole, interval.bytes / (2 * kGroups.spacing));
}

// Far from what is wanted, several codes are stepped over at once.
TEST(JpegIntervals, BitsOfFarGroupsAreAmongThoseOfNearOnes) {
  for (const int percent : {2, 10, 60, 190}) {
    const std::vector<std::byte> jpeg = encode(noisy(640, 64, 5), percent, 4);
    const JpegInterval interval = jpeg_layout(jpeg).value().intervals.front();
    const FlippableBits finder = FlippableBits::of(jpeg).value();
    const auto all = finder.find(jpeg, interval, 160, {.spacing = 1, .together = 1, .within = 1}).value();
    for (const std::size_t spacing : {64U, 300U, 1024U}) {
      const auto some = finder.find(jpeg, interval, 160, {spacing, 4, 64}).value();
      EXPECT_GE(some.size(), interval.bytes / spacing / 2) << percent << "%, every " << spacing;
      // The first of a group is the first of all behind where it may begin, as far as stuffed zeros allow.
      for (const FlippableBit& bit : some)
        EXPECT_TRUE(std::any_of(
            all.begin(), all.end(),
            [&](const FlippableBit& known) { return known.at == bit.at && known.mask == bit.mask; }))
            << "byte " << bit.at << ", " << percent << "%, every " << spacing;
    }
  }
}

TEST(JpegIntervals, RefuseWhatIsNotOfOurEncoder) {
  std::vector<std::byte> jpeg = encode(noisy(64, 64, 3), 20, 1);
  for (std::size_t cut = 0; cut + 1 < jpeg.size(); cut += 7)
    EXPECT_FALSE(jpeg_layout(std::span(jpeg).first(cut)).ok()) << cut;
  const JpegInterval first = jpeg_layout(jpeg).value().intervals.front();
  EXPECT_FALSE(FlippableBits::of(jpeg)->find(jpeg, first, 1000, kSingly).ok())
      << "so many units are not in there";
  for (std::size_t at = 0; at < first.begin; ++at) {
    std::vector<std::byte> bent = jpeg;
    bent[at] ^= std::byte{0x81};
    const auto layout = jpeg_layout(bent);
    const auto finder = FlippableBits::of(bent);
    if (layout.ok() && finder.ok())
      static_cast<void>(finder->find(bent, layout->intervals.front(), 4, kSingly).ok());  // must not crash
  }
}

}  // namespace
}  // namespace penstock
