#include "datagen/recipe/photo_composer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "datagen/codec/jpeg.hpp"
#include "datagen/content/block_census.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

const Scenery& scenery() {
  static const Scenery scenery(7);
  return scenery;
}

struct Composer {
  explicit Composer(double median, double sigma = 0.4)
      : sizes{median, sigma}, stock(scenery(), RandomStream(7, "strips")), maker(make()) {}
  PhotoComposer make() const { return {stock, RandomStream(7, "pictures"), sizes, "test, seed 7"}; }
  PhotoSizes sizes;
  StripStock stock;
  PhotoComposer maker;
};

TEST(PhotoComposer, PicturesDecodeAndHaveTheirSizes) {
  for (const double median : {5000.0, 12000.0, 112000.0, 1.5e6}) {
    Composer composer(median);
    JpegDecoder decoder;
    Image image;
    double off = 0;
    const uint64_t count = median > 1e6 ? 4 : 200;
    for (uint64_t i = 0; i < count; ++i) {
      const FieldBytes made = composer.maker.make(i).value().front();
      const std::vector<std::byte> jpeg = joined(made);
      ASSERT_EQ(jpeg.size(), made.bytes);
      EXPECT_EQ(made.crc32c, crc32c(jpeg)) << i;
      EXPECT_EQ(decoder.read_header(jpeg)->restart_interval, 0U)
          << "decoders are slower with restart intervals";
      const Result<void> decoded = decoder.decode(jpeg, image);
      ASSERT_TRUE(decoded.ok()) << median << " sample " << i << ": " << decoded.error().message();
      const double wanted = photo_bytes(composer.sizes, RandomStream(7, "pictures"), i);
      const double got = double(made.bytes) / wanted;
      EXPECT_NEAR(got, 1.0, 0.05) << median << " sample " << i;
      off += std::abs(got - 1.0);
    }
    EXPECT_LT(off / double(count), 0.015) << median;
  }
}

TEST(PhotoComposer, ShapesAreThoseOfPhotographs) {
  Composer composer(112000);
  JpegDecoder decoder;
  double wide = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const JpegHeader header = decoder.read_header(joined(composer.maker.make(i).value().front())).value();
    const double proportion = double(header.width) / header.height;
    EXPECT_GT(proportion, 0.3) << i;
    EXPECT_LT(proportion, 4.0) << i;
    if (proportion > 1) ++wide;
  }
  EXPECT_GT(wide, 150);
  EXPECT_LT(wide, 290);
}

// Deduplication in a file system must find no equal blocks.
TEST(PhotoComposer, NoBlockOccursTwice) {
  struct Case {
    double median;
    uint64_t samples;
  };
  for (const Case& each : {Case{112000, 500}, Case{12000, 5000}}) {
    Composer composer(each.median);
    BlockCensus census;
    for (uint64_t i = 0; i < each.samples; ++i) {
      const std::vector<std::byte> jpeg = joined(composer.maker.make(i).value().front());
      for (size_t at = 0; at + kBlockBytes <= jpeg.size(); at += kBlockBytes)
        census.add(std::span(jpeg).subspan(at).first<kBlockBytes>());
    }
    const BlockCounts counts = census.counts();
    EXPECT_GT(counts.compared_blocks, each.samples * 2);
    EXPECT_EQ(counts.duplicate_blocks, 0U) << each.median;
    EXPECT_EQ(counts.zero_blocks, 0U) << each.median;
  }
}

// Blocks of the same strip differ only in their random bits, so each block needs enough random bits. With 24
// bits per block, 2 of 16 million blocks were equal. With 16 bits, 70 blocks were equal in 20,000 pictures,
// which is too many.
TEST(PhotoComposer, EveryBlockOfAStripHasEnoughBitsOfItsOwn) {
  const StripStock stock(scenery(), RandomStream(7, "strips"));
  constexpr uint32_t kBlock = kBlockBytes;
  for (const uint32_t width : {354U, 500U, 707U})
    for (const int percent : {2, 5, 11, 24}) {
      const StripClass& made = *stock.get(width, percent).value();
      size_t fewest = kBlock;
      for (const Strip& strip : made.strips)
        for (uint32_t at = 0; at + kBlock <= strip.bytes; at += kBlock / 4) {
          const auto flips = std::span(made.flips).subspan(strip.first_flip, strip.flip_count);
          const auto inside = std::count_if(flips.begin(), flips.end(), [&](const Flip& flip) {
            return flip.at() >= at && flip.at() < at + kBlock;
          });
          fewest = std::min(fewest, size_t(inside));
        }
      EXPECT_LT(fewest, kBlock) << "no strip is as large as a block";
      EXPECT_GE(fewest, 24U) << width << " wide, quantizer " << percent << "%";
    }
}

// The pixels of a strip must not depend on the strip before it. Strips are connected only by the DC values at
// their ends.
TEST(PhotoComposer, StripsLookTheSameAfterAnyOther) {
  const StripStock stock(scenery(), RandomStream(7, "strips"));
  JpegDecoder decoder;
  for (const uint32_t width : {125U, 500U})
    for (const int percent : {2, 24, 192}) {
      const StripClass& made = *stock.get(width, percent).value();
      const size_t lines = size_t{strip_rows(width)} * 16;
      const auto picture = [&](size_t first, size_t second) {
        std::vector<std::byte> jpeg = made.header;
        jpeg[made.height_offset] = std::byte{0};
        jpeg[made.height_offset + 1] = static_cast<std::byte>(2 * lines);
        for (const size_t which : {first, second}) {
          const auto bytes =
              std::span(made.bytes).subspan(made.strips[which].begin, made.strips[which].bytes);
          jpeg.insert(jpeg.end(), bytes.begin(), bytes.end());
        }
        jpeg.insert(jpeg.end(), {std::byte{0xff}, std::byte{0xd9}});
        Image image;
        EXPECT_OK(decoder.decode(jpeg, image));
        return image.pixels;
      };
      const size_t row = size_t{width} * 3;
      const auto first = picture(0, 1);
      for (size_t which = 1; which < made.whole_strips; ++which) {
        const auto second = picture(which, 0);
        ASSERT_EQ(second.size(), first.size());
        // Decoders smooth colours across the border between two strips, so the lines next to it are not
        // compared.
        EXPECT_TRUE(std::equal(first.begin() + ptrdiff_t(2 * row),
                               first.begin() + ptrdiff_t((lines - 2) * row),
                               second.begin() + ptrdiff_t((lines + 2) * row)))
            << width << " wide, quantizer " << percent << "%, strip " << which;
      }
    }
}

TEST(PhotoComposer, WhatItMadeBeforeDoesNotMatter) {
  Composer composer(12000);
  std::vector<std::vector<std::byte>> expected;
  for (uint64_t i = 0; i < 60; ++i) expected.push_back(joined(composer.make().make(i).value().front()));
  for (const uint64_t step : {1U, 7U, 59U})
    for (uint64_t i = 0; i < 60; ++i) {
      const uint64_t index = i * step % 60;
      EXPECT_EQ(joined(composer.maker.make(index).value().front()), expected[index]) << index;
    }
}

// The quantizer is chosen by an estimate of the bytes per pixel before a picture exists. If the table of
// estimates is wrong, pictures get the wrong number of pixels.
TEST(PhotoComposer, PicturesAreAsLargeAsTheirShapeWas) {
  Composer composer(112000);
  JpegDecoder decoder;
  double drawn = 0;
  double got = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const RandomStream sample = RandomStream(7, "pictures").substream(i);
    Draws draws(sample.substream(1));
    const double wanted = photo_bytes(composer.sizes, RandomStream(7, "pictures"), i);
    drawn += draw_photo_shape(draws, composer.sizes, wanted).pixels();
    const JpegHeader header = decoder.read_header(joined(composer.maker.make(i).value().front())).value();
    got += double(header.width) * header.height;
  }
  EXPECT_NEAR(got / drawn, 1.0, 0.1);
}

}  // namespace
}  // namespace penstock
