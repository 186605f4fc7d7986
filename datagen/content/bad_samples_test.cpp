#include "datagen/content/bad_samples.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "datagen/codec/jpeg_encoder.hpp"
#include "datagen/format/format_testing.hpp"
#include "datagen/objects/scripted_backend.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

std::vector<std::byte> small_jpeg() {
  const Image image{16, 16, std::vector<uint8_t>(size_t{16} * 16 * 3, 99)};
  JpegEncoder encoder;
  const auto jpeg = encoder.encode(image, 90).value();
  return {jpeg.begin(), jpeg.end()};
}

class BadSamples : public ::testing::Test {
 protected:
  void TearDown() override { simulate_interrupt(0); }

  void put(const std::string& name, const std::vector<std::byte>& bytes) {
    const uint32_t object = builder_.add_object(name, bytes.size());
    builder_.add_sample({.offset = 0, .length = bytes.size(), .object = object});
    backend_.put(name, bytes);
  }

  // The list, a line each.
  std::vector<std::string> find(std::string codec) {
    builder_.facts().codec = std::move(codec);
    const Manifest manifest = Manifest::from_bytes(builder_.finish().value()).value();
    outcome_ = list_.add_samples(backend_, manifest, 3, false);
    std::vector<std::string> lines;
    std::istringstream text(list_.text());
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    EXPECT_EQ(lines.size(), list_.samples());
    return lines;
  }

  ScriptedBackend backend_;
  ManifestBuilder builder_{{}};
  BadList list_;
  Result<void> outcome_;
};

TEST_F(BadSamples, AreThoseThatCannotBeDecodedOrAreEmptyPictures) {
  const auto jpeg = small_jpeg();
  for (int i = 0; i < 20; ++i) put("a" + std::to_string(i + 10) + ".jpg", jpeg);
  put("b.jpg", {jpeg.begin(), jpeg.begin() + 40});
  put("c.jpg", {});
  put("d.jpg", std::vector<std::byte>(200, std::byte{7}));
  const auto bad = find("jpeg");
  ASSERT_EQ(bad.size(), 3U);
  EXPECT_TRUE(bad[0].starts_with("b.jpg\t0\t")) << bad[0];
  EXPECT_TRUE(bad[1].starts_with("c.jpg\t0\t")) << bad[1];
  EXPECT_TRUE(bad[2].starts_with("d.jpg\t0\t")) << bad[2];
}

TEST_F(BadSamples, RawSamplesAreOnlyRead) {
  put("a.bin", std::vector<std::byte>(200, std::byte{7}));
  put("b.bin", {});
  EXPECT_TRUE(find("raw").empty());
}

TEST_F(BadSamples, MixedCorporaAreJudgedByNameAndFirstBytes) {
  const auto jpeg = small_jpeg();
  put("a.csv", std::vector<std::byte>(9, std::byte{7}));
  put("b.JPG", std::vector<std::byte>(9, std::byte{7}));
  put("c.dat", {jpeg.begin(), jpeg.begin() + 40});
  const auto bad = find("mixed");
  ASSERT_EQ(bad.size(), 2U);
  EXPECT_TRUE(bad[0].starts_with("b.JPG\t")) << bad[0];
  EXPECT_TRUE(bad[1].starts_with("c.dat\t")) << bad[1];
}

TEST_F(BadSamples, ObjectsThatCannotBeReadAreBad) {
  const auto jpeg = small_jpeg();
  put("a.jpg", jpeg);
  put("b.jpg", jpeg);
  backend_.fail_on("b.jpg");
  list_.add_object("z\tz.tar", make_error(Errc::corrupt, "no\nheader"));
  builder_.facts().codec = "jpeg";
  const Manifest manifest = Manifest::from_bytes(builder_.finish().value()).value();
  ASSERT_TRUE(list_.add_samples(backend_, manifest, 2, false).ok());
  EXPECT_EQ(list_.objects(), 1U);
  EXPECT_EQ(list_.samples(), 1U);
  EXPECT_TRUE(list_.text().starts_with("z\\x09z.tar\t0\tno\\nheader\nb.jpg\t0\t")) << list_.text();
}

TEST_F(BadSamples, WhatCannotBeCheckedIsCountedAndNotCalledBad) {
  put("a.bin", std::vector<std::byte>(200, std::byte{7}));
  put("b.bin", std::vector<std::byte>(200, std::byte{7}));
  backend_.fail_on("b.bin", Errc::unsupported);
  EXPECT_TRUE(find("raw").empty());
  EXPECT_EQ(list_.unchecked(), 1U);
  EXPECT_NE(list_.first_unchecked().find("'b.bin'"), std::string::npos) << list_.first_unchecked();
}

TEST_F(BadSamples, AnInterruptIsNoBadSample) {
  put("a.jpg", small_jpeg());
  simulate_interrupt(2);
  EXPECT_TRUE(find("jpeg").empty());
  ASSERT_FALSE(outcome_.ok());
  EXPECT_EQ(outcome_.error().code, Errc::interrupted);
}

}  // namespace
}  // namespace penstock
