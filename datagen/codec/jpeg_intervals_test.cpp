#include "datagen/codec/jpeg_intervals.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "datagen/codec/jpeg_encoder.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

constexpr FlipGroups kOneBit{.spacing_bytes = 64, .bits_per_group = 1, .span_bytes = 64};

YccImage noisy(uint32_t width, uint32_t height, uint64_t seed) {
  YccImage image;
  image.reshape(width, height);
  const RandomStream random(seed, "noisy picture");
  uint64_t n = 0;
  for (std::vector<uint8_t>& plane : image.planes)
    for (size_t i = 0; i < plane.size(); ++i) plane[i] = uint8_t(100 + (i % 97) / 2 + random.below(n++, 40));
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
  for (size_t i = 0; i + 1 < layout.intervals.size(); ++i)
    EXPECT_EQ(layout.intervals[i].begin + layout.intervals[i].bytes + 2, layout.intervals[i + 1].begin);
  EXPECT_EQ(layout.intervals.back().begin + layout.intervals.back().bytes + 2, jpeg.size());
  EXPECT_EQ(std::to_integer<int>(jpeg[layout.height_offset]) * 256 +
                std::to_integer<int>(jpeg[layout.height_offset + 1]),
            16 * 7);
  EXPECT_EQ(jpeg_layout(encode(noisy(100, 50, 1), 20, 0)).value().intervals.size(), 1U);
}

TEST(JpegIntervals, EveryFlippedBitLeavesAValidPictureThatDiffers) {
  const std::vector<std::byte> jpeg = encode(noisy(96, 64, 2), 10, 2);
  const Image before = decode(jpeg);
  const JpegLayout layout = jpeg_layout(jpeg).value();
  const JpegCodes finder = JpegCodes::from_header(jpeg).value();
  size_t flipped = 0;
  for (const JpegInterval& interval : layout.intervals) {
    const auto bits = finder.find_bits(jpeg, interval, 12, kOneBit).value().flippable;
    ASSERT_FALSE(bits.empty());
    for (size_t i = 1; i < bits.size(); ++i)
      EXPECT_GE(bits[i].offset, bits[i - 1].offset + kOneBit.spacing_bytes);
    std::vector<std::byte> all = jpeg;
    for (const FlippableBit& bit : bits) {
      std::vector<std::byte> one = jpeg;
      one[bit.offset] ^= std::byte{bit.mask};
      all[bit.offset] ^= std::byte{bit.mask};
      const Image after = decode(one);
      EXPECT_NE(after.pixels, before.pixels) << "byte " << bit.offset;
      int most = 0;
      for (size_t p = 0; p < after.pixels.size(); ++p)
        most = std::max(most, std::abs(int{after.pixels[p]} - int{before.pixels[p]}));
      EXPECT_LE(most, 60) << "one step of one wave";
      ++flipped;
    }
    EXPECT_NE(decode(all).pixels, before.pixels);
  }
  EXPECT_GT(flipped, 20U);
}

TEST(JpegIntervals, BitsOfAGroupAreCloseTogetherInDifferentBytes) {
  const std::vector<std::byte> jpeg = encode(noisy(320, 64, 4), 10, 4);
  const JpegInterval interval = jpeg_layout(jpeg).value().intervals.front();
  constexpr FlipGroups kGroups{.spacing_bytes = 256, .bits_per_group = 3, .span_bytes = 32};
  const auto bits = JpegCodes::from_header(jpeg)->find_bits(jpeg, interval, 80, kGroups).value().flippable;
  size_t whole = 0;
  for (size_t i = 0; i < bits.size();) {
    const size_t first = bits[i].offset;
    size_t together = 1;
    for (; ++i < bits.size() && bits[i].offset < first + kGroups.spacing_bytes; ++together) {
      EXPECT_GT(bits[i].offset, bits[i - 1].offset);
      EXPECT_LT(bits[i].offset, first + kGroups.span_bytes + 8)
          << "zeros that are stuffed between them do not count";
    }
    EXPECT_LE(together, kGroups.bits_per_group);
    whole += together == kGroups.bits_per_group ? 1 : 0;
  }
  EXPECT_GT(whole, interval.bytes / (2 * kGroups.spacing_bytes));
}

// With a large spacing find_bits() skips several codes at once. It must still find only bits that it finds
// when it skips none.
TEST(JpegIntervals, BitsOfFarGroupsAreAmongThoseOfNearOnes) {
  for (const int percent : {2, 10, 60, 190}) {
    const std::vector<std::byte> jpeg = encode(noisy(640, 64, 5), percent, 4);
    const JpegInterval interval = jpeg_layout(jpeg).value().intervals.front();
    const JpegCodes finder = JpegCodes::from_header(jpeg).value();
    const auto all =
        finder.find_bits(jpeg, interval, 160, {.spacing_bytes = 1, .bits_per_group = 1, .span_bytes = 1})
            .value()
            .flippable;
    for (const size_t spacing : {64U, 300U, 1024U}) {
      const auto some = finder.find_bits(jpeg, interval, 160, {spacing, 4, 64}).value().flippable;
      EXPECT_GE(some.size(), interval.bytes / spacing / 2) << percent << "%, every " << spacing;
      // Each of these bits must be among those that are found without skipping.
      for (const FlippableBit& bit : some)
        EXPECT_TRUE(std::any_of(
            all.begin(), all.end(),
            [&](const FlippableBit& known) { return known.offset == bit.offset && known.mask == bit.mask; }))
            << "byte " << bit.offset << ", " << percent << "%, every " << spacing;
    }
  }
}

// Joins the intervals in the given order, without restart markers.
std::vector<std::byte> joined(std::span<const std::byte> jpeg,
                              const std::vector<std::vector<std::byte>>& intervals,
                              std::span<const size_t> order) {
  std::vector<std::byte> all = header_without_restarts(jpeg).value();
  for (const size_t which : order) all.insert(all.end(), intervals[which].begin(), intervals[which].end());
  all.insert(all.end(), {std::byte{0xff}, std::byte{0xd9}});
  return all;
}

TEST(JpegIntervals, WithFilledLastBytesCanFollowEachOtherWithoutMarkers) {
  constexpr uint32_t kWidth = 88;  // the last unit of each row is half outside the picture
  constexpr uint32_t kStrips = 24;
  constexpr uint32_t kLines = 32;
  YccImage image = noisy(kWidth, kStrips * kLines, 6);
  for (uint32_t end = kLines; end <= kStrips * kLines; end += kLines)
    for (size_t plane = 0; plane < 3; ++plane) {
      const size_t side = plane == 0 ? 16 : 8;
      const size_t stride = image.stride() * side / 16;
      for (size_t line = end * side / 16 - side; line < end * side / 16; ++line)
        std::fill_n(image.planes[plane].begin() + ptrdiff_t((line + 1) * stride - side), side, 128);
    }
  std::vector<bool> paddings(8);
  for (const int percent : {2, 10, 60, 190}) {
    const std::vector<std::byte> jpeg = encode(image, percent, kLines / 16);
    const JpegCodes codes = JpegCodes::from_header(jpeg).value();
    std::vector<std::vector<std::byte>> intervals;
    const JpegLayout layout = jpeg_layout(jpeg).value();
    for (const JpegInterval& interval : layout.intervals) {
      const auto bytes = std::span(jpeg).subspan(interval.begin, interval.bytes);
      intervals.emplace_back(bytes.begin(), bytes.end());
      const size_t padding = codes.find_bits(jpeg, interval, 12, kOneBit)->padding_bits;
      paddings.at(padding) = true;
      ASSERT_OK(codes.fill_last_byte(intervals.back(), padding));
      EXPECT_LE(intervals.back().size(), interval.bytes + 4);
      EXPECT_EQ(codes.find_bits(intervals.back(), {0, intervals.back().size()}, 12, kOneBit)->padding_bits,
                0U);
    }
    const Image before = decode(jpeg);
    std::vector<size_t> order(kStrips);
    for (size_t i = 0; i < kStrips; ++i) order[i] = i * 7 % kStrips;
    const std::vector<std::byte> all = joined(jpeg, intervals, order);
    EXPECT_EQ(JpegDecoder().read_header(all)->restart_interval, 0U);
    const Image after = decode(all);
    ASSERT_EQ(after.pixels.size(), before.pixels.size());
    // Compares neither the lines at the borders between strips nor the last units: decoders smooth colours
    // across borders, and a last unit may no longer be exactly grey.
    constexpr size_t kRow = size_t{kWidth} * 3;
    constexpr size_t kCompared = (kWidth - 32) * 3;
    for (size_t strip = 0; strip < kStrips; ++strip)
      for (size_t line = 2; line < kLines - 2; ++line)
        ASSERT_TRUE(std::equal(after.pixels.begin() + ptrdiff_t((strip * kLines + line) * kRow),
                               after.pixels.begin() + ptrdiff_t((strip * kLines + line) * kRow + kCompared),
                               before.pixels.begin() + ptrdiff_t((order[strip] * kLines + line) * kRow)))
            << percent << "%, strip " << order[strip] << " at " << strip << ", line " << line;
  }
  EXPECT_EQ(std::count(paddings.begin(), paddings.end(), true), 8) << "each of them was filled";
}

TEST(JpegIntervals, WithAPictureInTheirLastBlockAreNotFilled) {
  const std::vector<std::byte> jpeg = encode(noisy(96, 64, 2), 2, 2);
  const JpegCodes codes = JpegCodes::from_header(jpeg).value();
  std::vector<std::byte> none;
  EXPECT_ERRC(Errc::corrupt, codes.fill_last_byte(none, 3), "last block");
  EXPECT_ERRC(Errc::corrupt, codes.fill_last_byte(none, 8), "padded");
  std::vector<std::byte> ones(9, std::byte{0x7f});
  const std::vector<std::byte> before = ones;
  EXPECT_ERRC(Errc::corrupt, codes.fill_last_byte(ones, 1), "last block");
  EXPECT_EQ(ones, before);
}

TEST(JpegIntervals, RefusePicturesOfOtherEncoders) {
  std::vector<std::byte> jpeg = encode(noisy(64, 64, 3), 20, 1);
  for (size_t cut = 0; cut + 1 < jpeg.size(); cut += 7)
    EXPECT_FALSE(jpeg_layout(std::span(jpeg).first(cut)).ok()) << cut;
  const JpegInterval first = jpeg_layout(jpeg).value().intervals.front();
  EXPECT_FALSE(JpegCodes::from_header(jpeg)->find_bits(jpeg, first, 1000, kOneBit).ok())
      << "the interval has fewer than 1000 units";
  for (size_t at = 0; at < first.begin; ++at) {
    std::vector<std::byte> damaged = jpeg;
    damaged[at] ^= std::byte{0x81};
    const auto layout = jpeg_layout(damaged);
    const auto finder = JpegCodes::from_header(damaged);
    if (layout.ok() && finder.ok())
      static_cast<void>(
          // may fail or succeed, but must not crash
          finder->find_bits(damaged, layout->intervals.front(), 4, kOneBit).ok());
  }
}

}  // namespace
}  // namespace penstock
