#include "datagen/content/content.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "datagen/codec/gzip.hpp"
#include "datagen/codec/jpeg_encoder.hpp"
#include "datagen/codec/png.hpp"
#include "datagen/codec/zstd_size.hpp"
#include "datagen/format/format_testing.hpp"
#include "datagen/objects/scripted_backend.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

using Bytes = std::vector<std::byte>;

Bytes noise(size_t count, uint64_t seed, uint64_t values = 256) {
  Bytes bytes(count);
  const RandomStream random(seed, "content test");
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(random.below(i, values));
  return bytes;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Piece {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Makes a corpus for a test: adds objects and their samples one by one.
class ContentTest : public ::testing::Test {
 protected:
  void TearDown() override { simulate_interrupt(0); }

  void put(Bytes bytes, const std::vector<Piece>& samples, const std::string& extension = "") {
    const std::string name = "object" + std::to_string(builder_.objects() + 100) + extension;
    const uint32_t object = builder_.add_object(name, bytes.size());
    for (const Piece& piece : samples)
      builder_.add_sample({.offset = piece.offset, .length = piece.length, .object = object});
    backend_.put(name, std::move(bytes));
  }
  void put(const Bytes& bytes) { put(bytes, {{0, bytes.size()}}); }

  Result<Content> measure(std::string codec, ContentRequest request = {}) {
    builder_.facts().codec = std::move(codec);
    const Manifest manifest = Manifest::from_bytes(builder_.finish().value()).value();
    return measure_content(backend_, manifest, request);
  }

  ScriptedBackend backend_;
  ManifestBuilder builder_{
      ManifestFacts{.recipe = "made-up", .format = "files", .codec = "", .settings = {}, .label_names = {}}};
};

TEST_F(ContentTest, NoiseHasNeitherEmptyNorEqualBlocksAndDoesNotCompress) {
  for (uint64_t i = 0; i < 5; ++i) put(noise(20'000, i));
  const Content content = measure("raw").value();
  EXPECT_EQ(content.samples, 5U);
  EXPECT_EQ(content.bytes, 100'000U);
  EXPECT_EQ(content.blocks.inspected_blocks, 5U * 4) << "whole blocks alone";
  EXPECT_EQ(content.blocks.zero_blocks + content.blocks.duplicate_blocks, 0U);
  if (content.zstd.ok()) {
    EXPECT_NEAR(content.zstd->each_sample, 1.0, 0.01);
  } else {
    EXPECT_EQ(content.zstd.error().message(), "this build lacks zstd");
  }
}

TEST_F(ContentTest, CompressedPicturesAreDecodedAndDamagedOnesNamed) {
  if (!gzip_available().ok()) GTEST_SKIP() << gzip_available().error().message();
  Image image{64, 48, std::vector<uint8_t>(size_t{64} * 48 * 3, 99)};
  JpegEncoder encoder;
  const auto jpeg = encoder.encode(image, 90).value();
  const Field field{.name = "image", .codec = "jpeg", .extension = ".jpg", .varies = true};
  const std::vector<TestSample> samples(3, {.label = 0, .fields = {{jpeg.begin(), jpeg.end()}}});
  const Tier tier = open_tier("mem:content-test", kNoNamedTiers).value();
  const auto format = format_of("tfrecord", {{"compression", "gzip"}});
  const MadeObject made = make_object(*tier.backend, *format, "o", {&field, 1}, samples).value();
  Bytes bytes = penstock::content(*tier.backend, "o");
  bytes[made.placed[1].offset + made.placed[1].length - 1] ^= std::byte{1};
  std::vector<Piece> pieces;
  for (const Placement& at : made.placed) pieces.push_back({at.offset, at.length});
  put(bytes, pieces);
  const Content seen = measure("jpeg.tfrecord.gz").value();
  EXPECT_EQ(seen.samples, 2U);
  EXPECT_EQ(seen.unreadable_samples, 1U);
  EXPECT_EQ(seen.bytes, 2 * jpeg.size());
  EXPECT_EQ(seen.pictures.jpeg_count, 2U);
  EXPECT_EQ(seen.pictures.failed_count, 0U);
  const std::string where = "'object100' at byte " + std::to_string(made.placed[1].offset);
  EXPECT_NE(seen.first_failure.find(where), std::string::npos) << seen.first_failure;
  EXPECT_NEAR(seen.pictures.bytes_per_pixel, double(jpeg.size()) / (64 * 48), 1e-9);
}

TEST_F(ContentTest, FindsBlocksThatStorageCouldSave) {
  put(noise(3 * kBlockBytes, 1));
  put(noise(kBlockBytes, 2) + Bytes(2 * kBlockBytes) + noise(3 * kBlockBytes, 1));
  put(noise(10, 3) + noise(3 * kBlockBytes, 1));  // the same bytes, but shifted so that no block is equal
  const Content content = measure("raw").value();
  EXPECT_EQ(content.blocks.inspected_blocks, 3U + 6 + 3);
  EXPECT_EQ(content.blocks.zero_blocks, 2U);
  EXPECT_EQ(content.blocks.duplicate_blocks, 3U);
}

TEST_F(ContentTest, CompressionIsOfTheSamplesAlone) {
  if (!zstd_available().ok()) GTEST_SKIP() << zstd_available().error().message();
  put(Bytes(100'000) + noise(100'000, 1, 16) + Bytes(100'000), {{100'000, 100'000}});
  EXPECT_NEAR(measure("raw")->zstd.value().each_sample, 2.0, 0.1);
}

TEST_F(ContentTest, RepetitionBetweenSamplesIsFoundOnlyInOneStream) {
  if (!zstd_available().ok()) GTEST_SKIP() << zstd_available().error().message();
  for (int i = 0; i < 4; ++i) put(noise(50'000, 1));
  const Compression zstd = measure("raw")->zstd.value();
  EXPECT_NEAR(zstd.each_sample, 1.0, 0.01);
  EXPECT_GT(zstd.one_stream, 3.0);
}

TEST_F(ContentTest, BytesAroundSamplesOfAShardAreCountedOnce) {
  const Bytes whole = noise(10 * kBlockBytes, 1);
  put(whole, {{5'000, 3'000}, {9'000, 11'000}, {20'001, 15'000}});
  const Content content = measure("raw").value();
  EXPECT_EQ(content.bytes, 29'000U);
  EXPECT_EQ(content.blocks.inspected_blocks, 10U);
  EXPECT_EQ(content.blocks.duplicate_blocks, 0U);
}

TEST_F(ContentTest, OverlappingAndUnorderedSamplesAreNoCopies) {
  put(noise(10 * kBlockBytes, 1), {{20'000, 9'000}, {0, 40'960}, {8'192, 8'192}, {8'192, 8'192}});
  const Content content = measure("raw").value();
  EXPECT_EQ(content.samples, 4U);
  EXPECT_EQ(content.blocks.inspected_blocks, 10U);
  EXPECT_EQ(content.blocks.duplicate_blocks, 0U);
}

TEST_F(ContentTest, EmptyAndUnreadableSamplesAreSkippedAndCounted) {
  put(noise(20'000, 1));
  put({});
  put(noise(20'000, 2));
  backend_.fail_on("object102");
  const Content content = measure("raw").value();
  EXPECT_EQ(content.samples, 1U);
  EXPECT_EQ(content.empty_samples, 1U);
  EXPECT_EQ(content.unreadable_samples, 1U);
  EXPECT_EQ(content.bytes, 20'000U);
  EXPECT_NE(content.first_failure.find("object102"), std::string::npos) << content.first_failure;
  const std::string text = content_text(content, 3, {});
  EXPECT_NE(text.find("object102"), std::string::npos) << text;
}

TEST_F(ContentTest, SamplesLargerThanAPiece) {
  put(noise((5U << 20U) + 1'000, 1), {{777, 5U << 20U}});
  const Content content = measure("raw").value();
  EXPECT_EQ(content.blocks.inspected_blocks, 5U * 256);
  EXPECT_EQ(content.bytes, 5U << 20U);
}

TEST_F(ContentTest, SelectsSamplesEvenlyByTheSeed) {
  const auto names_of = [](uint64_t seed) {
    ScriptedBackend backend;
    const Manifest manifest = scripted_files(backend, 100);
    EXPECT_EQ(measure_content(backend, manifest, {.samples = 10, .seed = seed})->samples, 10U);
    return backend.reads();
  };
  const auto names = names_of(1);
  ASSERT_EQ(names.size(), 10U);
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(names[i].substr(0, 4), "s00" + std::to_string(i)) << "one of every ten";
  EXPECT_EQ(names_of(1), names);
  EXPECT_NE(names_of(2), names);
  ScriptedBackend backend;
  const Manifest manifest = scripted_files(backend, 100);
  EXPECT_EQ(measure_content(backend, manifest, {.samples = 1000})->samples, 100U);
}

TEST_F(ContentTest, PicturesAreDecoded) {
  JpegEncoder encoder;
  const auto jpeg = [&](unsigned restart_rows) {
    YccImage image;
    image.reshape(64, 48);
    for (auto& plane : image.planes) std::fill(plane.begin(), plane.end(), uint8_t{90});
    const auto bytes = encoder.encode(image, 50, restart_rows).value();
    return Bytes(bytes.begin(), bytes.end());
  };
  const Bytes plain = jpeg(0);
  put(plain);
  put(jpeg(1));
  put(plain + noise(10, 1), {{0, plain.size()}});
  put(plain, {{0, plain.size() / 2}});
  uint64_t png = 0;
  if (png_available().ok()) {
    std::vector<std::byte> encoded;
    const auto bytes = encode_png({4, 4, std::vector<uint8_t>(48, 7)}, encoded).value();
    put(Bytes(bytes.begin(), bytes.end()));
    png = 1;
  }
  put(noise(3'000, 5));
  const Content content = measure("mixed").value();
  const PictureFacts& pictures = content.pictures;
  EXPECT_EQ(pictures.jpeg_count, 3U);
  EXPECT_EQ(pictures.png_count, png);
  EXPECT_EQ(pictures.with_restarts, 1U);
  EXPECT_EQ(pictures.failed_count, 1U) << "half a picture; noise is none";
  EXPECT_NE(pictures.first_failure.find("'object103' at byte 0: cannot decode JPEG"), std::string::npos)
      << pictures.first_failure;
  EXPECT_GT(pictures.ns_per_byte, 0);
  EXPECT_GT(pictures.ns_per_pixel, 0);
  EXPECT_NEAR(pictures.bytes_per_pixel, double(plain.size()) / (64 * 48), 0.01);
}

TEST_F(ContentTest, JpegSamplesMustDecodeAndRawBytesAreNotDecoded) {
  put(noise(3'000, 5));
  EXPECT_EQ(measure("jpeg")->pictures.failed_count, 1U);
  builder_ = ManifestBuilder(ManifestFacts{});
  put({std::byte{0xff}, std::byte{0xd8}, std::byte{0xff}});
  const Content raw = measure("raw").value();
  EXPECT_EQ(raw.pictures.failed_count + raw.pictures.jpeg_count, 0U);
}

TEST_F(ContentTest, SamplesWithNamesOfPicturesMustDecode) {
  put(noise(3'000, 5), {{0, 3'000}}, ".txt");
  put(noise(3'000, 6), {{0, 3'000}}, ".PNG");
  put(noise(3'000, 7), {{0, 3'000}}, ".jpg");
  const Content content = measure("mixed").value();
  EXPECT_EQ(content.pictures.failed_count, 2U);
  const std::string first = "'object101.PNG' at byte 0: 3000 bytes that are neither a JPEG nor a PNG picture";
  EXPECT_NE(content.pictures.first_failure.find(first), std::string::npos) << content.pictures.first_failure;
  EXPECT_EQ(content_json(content)["pictures"]["failure"], content.pictures.first_failure);
  EXPECT_NE(content_text(content, 3, {}).find("2 pictures; the first: " + first), std::string::npos);
}

TEST_F(ContentTest, EmptySamples) {
  put({}, {{0, 0}});
  put(noise(5'000, 1), {{0, 0}, {5'000, 0}});
  const Content content = measure("jpeg").value();
  EXPECT_EQ(content.samples, 0U);
  EXPECT_EQ(content.empty_samples, 3U);
  EXPECT_EQ(content.blocks.inspected_blocks, 1U);
}

TEST_F(ContentTest, IfNoSampleCanBeReadItFailsAndCtrlCEndsIt) {
  put(noise(5'000, 1));
  backend_.fail_on("object100");
  const auto failed = measure("raw");
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message().find("object100"), std::string::npos);
  ScriptedBackend backend;
  const Manifest manifest = scripted_files(backend, 3);
  simulate_interrupt(2);
  EXPECT_EQ(measure_content(backend, manifest, {}).error().code, Errc::interrupted);
}

TEST_F(ContentTest, JsonSaysWhyAFigureIsMissing) {
  Content content{.samples = 1, .zstd = make_error(Errc::unsupported, "built without it")};
  const Json without = content_json(content);
  EXPECT_TRUE(without["zstd"].is_null());
  EXPECT_EQ(without["zstd_not_measured"], "built without it");
  EXPECT_NE(content_text(content, 7, {}).find("not measured: built without it"), std::string::npos);
  EXPECT_TRUE(without["pictures"].is_null());
  content.zstd = Compression{1.5, 2.5};
  content.pictures.jpeg_count = 4;
  content.pictures.with_restarts = 1;
  content.blocks = {.inspected_blocks = 10, .zero_blocks = 1, .compared_blocks = 4, .duplicate_blocks = 2};
  const Json with = content_json(content);
  EXPECT_EQ(with["zstd"]["ratio_alone"], 1.5);
  EXPECT_EQ(with["zstd"]["ratio_in_line"], 2.5);
  EXPECT_EQ(with["pictures"]["restart_interval_share"], 0.25);
  EXPECT_EQ(with["blocks"]["zero_share"], 0.1);
  EXPECT_EQ(with["blocks"]["duplicate_share"], 0.5);
  EXPECT_NE(content_text(content, 7, {}).find("of the 4 compared"), std::string::npos);
}

}  // namespace
}  // namespace penstock
