#include "datagen/codec/png.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/checksums/checksums_count.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

class Png : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!png_available().ok()) GTEST_SKIP() << png_available().error().what;
  }
};

Image some_picture(uint32_t width, uint32_t height) {
  Image image{.width = width, .height = height, .pixels = std::vector<uint8_t>(size_t{width} * height * 3)};
  const RandomStream random(7, "png");
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = uint8_t(i / 5 + random.below(i, 9));
  return image;
}

std::vector<std::byte> encoded(const Image& image) {
  std::vector<std::byte> memory;
  const std::span<const std::byte> png = encode_png(image, memory).value();
  return {png.begin(), png.end()};
}

TEST_F(Png, RoundTripKeepsThePixels) {
  for (const auto& [width, height] : {std::pair{1U, 1U}, {17U, 3U}, {3U, 400U}, {500U, 375U}}) {
    const Image image = some_picture(width, height);
    Image back;
    const Result<void> decoded = decode_png(encoded(image), back);
    ASSERT_TRUE(decoded.ok()) << decoded.error().what;
    EXPECT_EQ(back.width, width);
    EXPECT_EQ(back.height, height);
    EXPECT_EQ(back.pixels, image.pixels);
  }
}

TEST_F(Png, APictureDecoderDistinguishesTheFormats) {
  const Image image = some_picture(40, 30);
  Image decoded;
  PictureDecoder decoder;
  ASSERT_TRUE(decoder.decode(encoded(image), decoded).ok());
  EXPECT_EQ(decoded.pixels, image.pixels);
  const auto neither = decoder.decode(std::vector<std::byte>(100), decoded);
  ASSERT_FALSE(neither.ok());
  EXPECT_NE(neither.error().what.find("100 bytes that are neither a JPEG nor a PNG picture"),
            std::string::npos)
      << neither.error().what;
}

TEST_F(Png, ReusesMemoryForManyPictures) {
  std::vector<std::byte> memory;
  for (const uint32_t side : {200U, 10U, 300U}) {
    const Image image = some_picture(side, side);
    const auto png = encode_png(image, memory);
    ASSERT_TRUE(png.ok());
    EXPECT_EQ(std::vector<std::byte>(png->begin(), png->end()), encoded(image));
  }
}

TEST_F(Png, RefusesToEncodeInvalidPictures) {
  std::vector<std::byte> memory;
  EXPECT_EQ(encode_png(Image{}, memory).error().code, Errc::invalid_argument);
  EXPECT_EQ(encode_png({.width = 10, .height = 10, .pixels = {}}, memory).error().code,
            Errc::invalid_argument);
  EXPECT_EQ(encode_png({.width = 2'000'000, .height = 1, .pixels = {}}, memory).error().code,
            Errc::invalid_argument);
}

TEST_F(Png, TruncatedBeforeTheEndChunkIsCorrupt) {
  const std::vector<std::byte> png = encoded(some_picture(40, 30));
  Image image;
  constexpr size_t kEndChunkBytes = 12;
  for (size_t length = 0; length < png.size(); ++length) {
    const Result<void> decoded = decode_png(std::span(png).first(length), image);
    if (length >= png.size() - kEndChunkBytes) {  // all pixels are there
      ASSERT_TRUE(decoded.ok()) << length;
      EXPECT_TRUE(image.warnings[size_t(PictureWarning::no_end_marker)]) << length;
      EXPECT_EQ(image.warnings.count(), 1U) << length;
      continue;
    }
    ASSERT_FALSE(decoded.ok()) << length;
    EXPECT_EQ(decoded.error().code, Errc::corrupt);
    EXPECT_NE(decoded.error().what.find(std::to_string(length)), std::string::npos) << decoded.error().what;
  }
}

TEST_F(Png, OddChunksAndBytesAfterTheEndAreWarnings) {
  const std::vector<std::byte> png = encoded(some_picture(40, 30));
  Image sound;
  ASSERT_TRUE(decode_png(png, sound).ok());
  EXPECT_TRUE(sound.warnings.none());
  constexpr size_t kHeaderEnd = 8 + 25;  // signature and IHDR
  constexpr unsigned char kBadGamma[] = {0, 0, 0, 4, 'g', 'A', 'M', 'A', 0, 0, 0, 0, 1, 2, 3, 4};
  const auto bad = std::as_bytes(std::span(kBadGamma));
  std::vector<std::byte> odd = png;
  odd.insert(odd.begin() + kHeaderEnd, bad.begin(), bad.end());
  odd.resize(odd.size() + 5);
  Image image;
  ASSERT_TRUE(decode_png(odd, image).ok());
  EXPECT_EQ(image.pixels, sound.pixels);
  EXPECT_TRUE(image.warnings[size_t(PictureWarning::bytes_after_end)]);
  EXPECT_EQ(image.warnings[size_t(PictureWarning::odd_chunks)], kVerifyChecksums);
}

// A flipped bit in a chunk that the decoder uses must be found by the chunk's checksum. In other chunks it
// must not change the pixels.
TEST_F(Png, FlippedBitsNeverGiveOtherPixels) {
  const Image image = some_picture(40, 30);
  const std::vector<std::byte> png = encoded(image);
  size_t found = 0;
  for (size_t at = 0; at < png.size(); ++at) {
    std::vector<std::byte> flipped = png;
    flipped[at] ^= std::byte{0x10};
    Image back;
    const Result<void> decoded = decode_png(flipped, back);
    if (decoded.ok())
      EXPECT_EQ(back.pixels, image.pixels) << at;
    else
      ++found;
  }
  EXPECT_GT(found, png.size() * 9 / 10);
}

TEST_F(Png, AChunkLongerThanTheFileIsRefusedBeforeMemoryIsTaken) {
  constexpr size_t kHeaderBytes = 8 + 25;
  std::vector<std::byte> png = encoded(some_picture(3, 3));
  std::vector<std::byte> text(8);  // the head of a chunk that claims 1 GiB
  text[0] = std::byte{0x40};
  std::memcpy(text.data() + 4, "tEXt", 4);
  png.insert(png.begin() + kHeaderBytes, text.begin(), text.end());
  Image image;
  const Result<void> decoded = decode_png(png, image);
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code, Errc::corrupt) << decoded.error().what;
  EXPECT_NE(decoded.error().what.find("it is truncated"), std::string::npos) << decoded.error().what;
}

TEST_F(Png, AbsurdSizesAreRefusedBeforeMemoryIsTaken) {
  // A PNG that claims 32768x32768 pixels in 57 bytes, with correct checksums.
  const std::array<uint8_t, 57> bytes{137, 80, 78, 71,  13, 10,  26, 10,  0,   0,   0,  13,  73,  72, 68,
                                      82,  0,  0,  128, 0,  0,   0,  128, 0,   8,   2,  0,   0,   0,  75,
                                      30,  52, 40, 0,   0,  0,   12, 73,  68,  65,  84, 120, 156, 99, 96,
                                      160, 61, 0,  0,   0,  100, 0,  1,   134, 100, 60, 53};
  Image image;
  const Result<void> decoded = decode_png(std::as_bytes(std::span(bytes)), image);
  EXPECT_EQ(decoded.error().code, Errc::corrupt);
  EXPECT_TRUE(image.pixels.empty());
}

}  // namespace
}  // namespace penstock
