#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "datagen/codec/jpeg_testing.hpp"

namespace penstock {
namespace {

TEST(Jpeg, RoundTripKeepsThePicture) {
  const Image picture = slopes(100, 75);
  JpegDecoder decoder;
  Image decoded;
  const Bytes bytes = baseline(picture, 95);
  ASSERT_TRUE(decoder.decode(bytes, decoded).ok());
  EXPECT_LT(mean_difference(picture, decoded), 1.5);
  const JpegHeader header = decoder.read_header(bytes).value();
  EXPECT_EQ(header.width, 100U);
  EXPECT_EQ(header.height, 75U);
  EXPECT_EQ(header.components, 3);
}

TEST(Jpeg, OddSizesRoundTrip) {
  JpegEncoder encoder;
  JpegDecoder decoder;
  Image decoded;
  for (const auto& [width, height] : {std::pair{1U, 1U}, {1U, 40U}, {17U, 1U}, {15U, 33U}, {16U, 16U}}) {
    const Image picture = slopes(width, height);
    ASSERT_TRUE(decoder.decode(encoder.encode(picture, 100).value(), decoded).ok());
    EXPECT_LT(mean_difference(picture, decoded), 6.0) << width << "x" << height;
  }
}

TEST(Jpeg, SamePixelsSameBytes) {
  const Image noise = speckles(90, 60, 1);
  JpegEncoder used;
  ASSERT_TRUE(used.encode(slopes(300, 200), 40).ok());
  EXPECT_EQ(copy(used.encode(noise, 80).value()), baseline(noise, 80));
}

TEST(Jpeg, EncodesBaseline420WithoutMetadata) {
  const Bytes bytes = baseline(slopes(64, 48));
  bool frame = false;
  for (size_t i = 2; i + 4 < bytes.size();) {
    ASSERT_EQ(bytes[i], std::byte{0xff});
    const unsigned marker = std::to_integer<unsigned>(bytes[i + 1]);
    if (marker == 0xda) break;
    EXPECT_TRUE(marker == 0xe0 || marker == 0xdb || marker == 0xc0 || marker == 0xc4) << std::hex << marker;
    if (marker == 0xc0) {
      frame = true;
      EXPECT_EQ(bytes[i + 11], std::byte{0x22});  // luma 2x2
      EXPECT_EQ(bytes[i + 14], std::byte{0x11});
      EXPECT_EQ(bytes[i + 17], std::byte{0x11});
    }
    i += 2 + std::to_integer<size_t>(bytes[i + 2]) * 256 + std::to_integer<size_t>(bytes[i + 3]);
  }
  EXPECT_TRUE(frame);
}

TEST(Jpeg, PlanesComeOutAsTheirColours) {
  YccImage planes;
  planes.reshape(37, 21);
  EXPECT_EQ(planes.stride(), 48U);
  EXPECT_EQ(planes.padded_height(), 32U);
  planes.planes[0].assign(planes.planes[0].size(), 76);  // pure red is (76, 85, 255)
  planes.planes[1].assign(planes.planes[1].size(), 85);
  planes.planes[2].assign(planes.planes[2].size(), 255);
  JpegEncoder encoder;
  JpegDecoder decoder;
  Image decoded;
  ASSERT_TRUE(decoder.decode(encoder.encode(planes, 2).value(), decoded).ok());
  ASSERT_EQ(decoded.width, 37U);
  ASSERT_EQ(decoded.height, 21U);
  for (size_t i = 0; i < decoded.pixels.size(); i += 3) {
    EXPECT_GT(decoded.pixels[i], 250);
    EXPECT_LT(decoded.pixels[i + 1], 5);
    EXPECT_LT(decoded.pixels[i + 2], 5);
  }
}

TEST(Jpeg, WorstCaseNoiseFitsTheBuffer) {
  Image noise{64, 64, {}};
  const RandomStream random(3, "black and white");
  for (uint64_t i = 0; i < 64UL * 64; ++i)
    for (int c = 0; c < 3; ++c) noise.pixels.push_back(random.below(i, 2) != 0 ? 255 : 0);
  JpegEncoder encoder;
  JpegDecoder decoder;
  Image decoded;
  ASSERT_TRUE(decoder.decode(encoder.encode(noise, 100).value(), decoded).ok());
}

TEST(Jpeg, EncoderRefusesWhatJpegLacks) {
  JpegEncoder encoder;
  EXPECT_EQ(encoder.encode(slopes(8, 8), 0).error().code, Errc::invalid_argument);
  EXPECT_EQ(encoder.encode(slopes(8, 8), 101).error().code, Errc::invalid_argument);
  EXPECT_EQ(encoder.encode(Image{0, 8, {}}, 90).error().code, Errc::invalid_argument);
  EXPECT_EQ(encoder.encode(Image{8, 8, {}}, 90).error().code, Errc::invalid_argument);
  EXPECT_EQ(encoder.encode(Image{70000, 1, std::vector<uint8_t>(210000)}, 90).error().code,
            Errc::invalid_argument);
  YccImage planes;
  planes.reshape(8, 8);
  EXPECT_EQ(encoder.encode(planes, 0).error().code, Errc::invalid_argument);
  EXPECT_TRUE(encoder.encode(slopes(8, 8), 90).ok());
}

TEST(Jpeg, GreyscaleBecomesRgb) {
  Kind kind{JCS_GRAYSCALE, JCS_GRAYSCALE, 1};
  JpegDecoder decoder;
  Image decoded;
  const Bytes bytes = encode_kind(kind, 16, 8, std::vector<uint8_t>(128, 99));
  EXPECT_EQ(decoder.read_header(bytes).value().components, 1);
  ASSERT_TRUE(decoder.decode(bytes, decoded).ok());
  ASSERT_EQ(decoded.pixels.size(), 16U * 8 * 3);
  for (const uint8_t value : decoded.pixels) EXPECT_NEAR(value, 99, 1);
}

TEST(Jpeg, CmykBecomesRgb) {
  // The ink is half yellow and a little black. As RGB it is (255, 255, 127) times 200/255.
  const auto check = [](const Kind& kind, std::vector<uint8_t> ink) {
    std::vector<uint8_t> samples;
    for (int i = 0; i < 16 * 16; ++i) samples.insert(samples.end(), ink.begin(), ink.end());
    JpegDecoder decoder;
    Image decoded;
    const Bytes bytes = encode_kind(kind, 16, 16, samples);
    EXPECT_EQ(decoder.read_header(bytes).value().components, 4);
    ASSERT_TRUE(decoder.decode(bytes, decoded).ok());
    EXPECT_NEAR(decoded.pixels[0], 200, 3);
    EXPECT_NEAR(decoded.pixels[1], 200, 3);
    EXPECT_NEAR(decoded.pixels[2], 100, 3);
  };
  check(Kind{JCS_CMYK, JCS_CMYK, 4, false, false}, {255, 255, 127, 200});
  check(Kind{JCS_CMYK, JCS_CMYK, 4, false, true}, {255, 255, 127, 200});
  check(Kind{JCS_CMYK, JCS_YCCK, 4, false, true}, {255, 255, 127, 200});
}

TEST(Jpeg, ProgressiveDecodesAsBaseline) {
  const Image picture = slopes(80, 50);
  JpegDecoder decoder;
  Image decoded;
  ASSERT_TRUE(decoder.decode(progressive(picture), decoded).ok());
  EXPECT_LT(mean_difference(picture, decoded), 1.5);
}

TEST(Jpeg, ShrinksWhileDecoding) {
  const Bytes bytes = baseline(slopes(100, 75));
  JpegDecoder decoder;
  Image decoded;
  ASSERT_TRUE(decoder.decode(bytes, decoded, 2).ok());
  EXPECT_LT(mean_difference(slopes(50, 38), decoded), 4.0);
  ASSERT_TRUE(decoder.decode(bytes, decoded, 8).ok());
  EXPECT_EQ(decoded.width, 13U);
  EXPECT_EQ(decoded.height, 10U);
  EXPECT_EQ(decoder.decode(bytes, decoded, 3).error().code, Errc::invalid_argument);
}

TEST(Jpeg, APartHasThePixelsOfTheWhole) {
  JpegEncoder encoder;
  for (const auto& [width, height] : {std::pair{200U, 150U}, std::pair{33U, 17U}, std::pair{16U, 16U}}) {
    const auto jpeg = encoder.encode(speckles(width, height, width), 90);
    ASSERT_TRUE(jpeg.ok());
    expect_parts_of(copy(*jpeg));
  }
  const std::vector<uint8_t> samples = speckles(61, 47, 3).pixels;  // more samples than any case needs
  expect_parts_of(encode_kind({.progressive = true}, 61, 15, samples));
  expect_parts_of(
      encode_kind({.input = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .components = 1}, 61, 15, samples));
  expect_parts_of(
      encode_kind({.input = JCS_CMYK, .stored = JCS_YCCK, .components = 4, .adobe = true}, 30, 15, samples));
}

TEST(Jpeg, APartOutsideOfThePictureIsRefused) {
  JpegEncoder encoder;
  const auto jpeg = encoder.encode(slopes(40, 30), 90);
  ASSERT_TRUE(jpeg.ok());
  JpegDecoder decoder;
  Image cut;
  for (const PicturePart& part :
       {PicturePart{0, 0, 0, 1}, PicturePart{0, 0, 1, 0}, PicturePart{40, 0, 1, 1}, PicturePart{1, 0, 40, 30},
        PicturePart{0, 29, 1, 2}, PicturePart{UINT32_MAX, 0, 2, 2}}) {
    const auto done = decoder.decode_part(*jpeg, part, cut);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, Errc::invalid_argument);
  }
  EXPECT_TRUE(decoder.decode_part(*jpeg, {39, 29, 1, 1}, cut).ok()) << "the decoder goes on";
}

TEST(JpegDamage, EveryTruncationIsReported) {
  const Image picture = speckles(24, 17, 5);
  JpegDecoder decoder;
  Image decoded;
  for (const Bytes& whole : {baseline(picture), progressive(picture)}) {
    ASSERT_TRUE(decoder.decode(whole, decoded).ok());
    const Image expected = decoded;
    for (size_t length = 0; length < whole.size(); ++length) {
      // Makes a copy of exactly this length, so that the address sanitizer finds a read beyond it.
      const Bytes cut(whole.begin(), whole.begin() + ptrdiff_t(length));
      const Result<void> result = decoder.decode(cut, decoded);
      if (length + 2 >= whole.size()) {  // only the end marker is cut
        ASSERT_TRUE(result.ok()) << result.error().what;
        EXPECT_EQ(decoded.warnings, warnings({PictureWarning::no_end_marker}));
        EXPECT_EQ(decoded.pixels, expected.pixels);
        continue;
      }
      ASSERT_FALSE(result.ok()) << length;
      ASSERT_EQ(result.error().code, Errc::corrupt) << length;
      ASSERT_NE(result.error().what.find("cannot decode JPEG of " + std::to_string(length) + " bytes: "),
                std::string::npos)
          << result.error().what;
    }
    ASSERT_TRUE(decoder.decode(whole, decoded).ok());
    EXPECT_EQ(decoded.pixels, expected.pixels);
  }
}

TEST(JpegDamage, EveryFlippedBitIsErrorOrPicture) {
  const Image picture = speckles(24, 17, 6);
  JpegDecoder decoder;
  Image decoded;
  for (const Bytes& whole : {baseline(picture, 60), progressive(slopes(24, 17))})
    for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
      Bytes damaged = whole;
      damaged[bit / 8] ^= std::byte{1} << (bit % 8);
      const Result<void> result = decoder.decode(damaged, decoded);
      if (result.ok())
        ASSERT_EQ(decoded.pixels.size(), size_t{decoded.width} * decoded.height * 3);
      else
        ASSERT_EQ(result.error().code, Errc::corrupt) << result.error().what;
    }
}

TEST(JpegDamage, RandomDamageNeverCrashes) {
  const Bytes kinds[] = {
      baseline(speckles(50, 40, 7), 70), progressive(speckles(50, 40, 8)),
      encode_kind(Kind{JCS_CMYK, JCS_YCCK, 4, false, true}, 20, 20, std::vector<uint8_t>(1600, 77)),
      encode_kind(Kind{JCS_RGB, JCS_YCbCr, 3, false, false, true}, 50, 40, speckles(50, 40, 9).pixels)};
  JpegDecoder decoder;
  Image decoded;
  const RandomStream random(11, "damage");
  uint64_t draws = 0;
  const auto draw = [&](uint64_t bound) { return random.below(draws++, bound); };
  for (int round = 0; round < 1500; ++round)
    for (const Bytes& whole : kinds) {
      Bytes damaged = whole;
      const uint64_t edits = 1 + draw(6);
      for (uint64_t i = 0; i < edits; ++i) {
        const size_t at = draw(damaged.size());
        damaged[at] = static_cast<std::byte>(draw(256));
      }
      if (draw(2) == 0) damaged.resize(draw(damaged.size()));
      const Result<void> result = decoder.decode(damaged, decoded);
      if (!result.ok()) {
        ASSERT_EQ(result.error().code, Errc::corrupt) << result.error().what;
      }
    }
}

TEST(JpegDamage, OtherFilesAreReported) {
  JpegDecoder decoder;
  Image decoded;
  EXPECT_NE(decoder.decode({}, decoded).error().what.find("Empty input"), std::string::npos);
  const Bytes png{std::byte{0x89}, std::byte{'P'}, std::byte{'N'}, std::byte{'G'}};
  EXPECT_NE(decoder.decode(png, decoded).error().what.find("Not a JPEG file"), std::string::npos);
  EXPECT_EQ(decoder.read_header(png).error().code, Errc::corrupt);
}

// Returns the JPEG with another size in its frame header, whose marker is `frame`.
Bytes claiming(Bytes jpeg, std::byte frame, uint16_t width, uint16_t height) {
  const std::byte sides[] = {std::byte(height >> 8), std::byte(height & 0xff), std::byte(width >> 8),
                             std::byte(width & 0xff)};
  const std::byte marker[] = {std::byte{0xff}, frame};
  const auto at = std::search(jpeg.begin(), jpeg.end(), std::begin(marker), std::end(marker));
  if (jpeg.end() - at >= 9) std::copy(std::begin(sides), std::end(sides), at + 5);
  return jpeg;
}

TEST(JpegDamage, ClaimsBeyondTheBytesAreRefused) {
  constexpr std::byte kBaselineFrame{0xc0};
  JpegDecoder decoder;
  Image decoded;
  const Error error =
      decoder.decode(claiming(baseline(slopes(16, 16)), kBaselineFrame, 16144, 16144), decoded).error();
  EXPECT_EQ(error.code, Errc::corrupt);
  EXPECT_NE(error.what.find("16144x16144 pixels"), std::string::npos) << error.what;
  EXPECT_TRUE(decoded.pixels.empty());
}

TEST(JpegDamage, ArithmeticCodingDoesNotAvoidTheLimit) {
  constexpr std::byte kArithmeticFrame{0xc9};
  const Bytes small = encode_kind({.arithmetic = true}, 16, 16, slopes(16, 16).pixels);
  JpegDecoder decoder;
  Image decoded;
  for (const uint16_t side : {uint16_t{2100}, uint16_t{32767}}) {
    const Bytes bomb = claiming(small, kArithmeticFrame, side, side);
    const std::string size = std::to_string(side) + "x" + std::to_string(side) + " pixels";
    for (const Result<void>& result :
         {decoder.decode(bomb, decoded), decoder.decode_part(bomb, {0, 0, 8, 8}, decoded)}) {
      ASSERT_FALSE(result.ok()) << side;
      EXPECT_EQ(result.error().code, Errc::corrupt);
      EXPECT_NE(result.error().what.find(size), std::string::npos) << result.error().what;
    }
    EXPECT_EQ(decoder.read_header(bomb).error().code, Errc::corrupt);
  }
  EXPECT_EQ(decoded.pixels.capacity(), 0U);
  // With arithmetic coding, a picture of one colour needs fewer bytes than with any Huffman code.
  const Bytes flat =
      encode_kind({.arithmetic = true}, 2000, 2000, std::vector<uint8_t>(size_t{2000} * 2000 * 3, 99));
  EXPECT_LT(flat.size(), 2000U * 2000 / 2048);
  EXPECT_TRUE(decoder.decode(flat, decoded).ok());
}

TEST(Jpeg, CodecsMove) {
  JpegDecoder decoder;
  Image decoded;
  ASSERT_TRUE(decoder.decode(baseline(slopes(8, 8)), decoded).ok());
  JpegDecoder moved = std::move(decoder);
  ASSERT_TRUE(moved.decode(baseline(slopes(9, 9)), decoded).ok());
  EXPECT_EQ(decoded.width, 9U);
}

}  // namespace
}  // namespace penstock
