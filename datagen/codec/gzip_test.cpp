#include "datagen/codec/gzip.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "io_backends/core/random.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
using Bytes = std::vector<std::byte>;

namespace {

Bytes noise(size_t bytes) {
  const RandomStream random(3, "gzip");
  Bytes out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(random.bits(i));
  return out;
}

class Gzip : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gzip_available().ok()) GTEST_SKIP() << gzip_available().error().what;
    maker_.emplace(GzipMaker::start().value());
    inflater_.emplace(StreamInflater::start(DeflateFormat::gzip).value());
  }

  // Compresses the bytes to a gzip member. Passes them to GzipMaker in pieces of `cut` bytes.
  Bytes member(std::span<const std::byte> bytes, size_t cut = SIZE_MAX) {
    std::vector<std::span<const std::byte>> pieces{{}};
    for (; bytes.size() > cut; bytes = bytes.subspan(cut)) pieces.push_back(bytes.first(cut));
    pieces.push_back(bytes);
    Bytes out;
    EXPECT_OK(maker_->make(pieces, [&](std::span<const std::byte> made) {
      out.insert(out.end(), made.begin(), made.end());
      return success();
    }));
    return out;
  }

  // Inflates a member in steps that take and return at most `at_once` bytes.
  Result<Bytes> inflated(std::span<const std::byte> in, size_t at_once = 4096) {
    inflater_->begin();
    Bytes out;
    Bytes piece(at_once);
    while (true) {
      PENSTOCK_ASSIGN(const StreamInflater::Step step,
                      inflater_->step(in.first(std::min(at_once, in.size())), piece));
      out.insert(out.end(), piece.begin(), piece.begin() + ptrdiff_t(step.out_bytes));
      in = in.subspan(step.in_bytes);
      if (step.ended) return out;
      if (step.in_bytes == 0 && step.out_bytes == 0) return make_error(Errc::truncated, "breaks off");
    }
  }

  std::optional<GzipMaker> maker_;
  std::optional<StreamInflater> inflater_;
};

TEST_F(Gzip, InflatingGivesTheOriginalBytes) {
  for (const size_t bytes : {0U, 1U, 1000U, 65536U, 65537U, 1000000U}) {
    for (const Bytes& original : {noise(bytes), Bytes(bytes, std::byte{7})}) {
      const Bytes compressed = member(original);
      EXPECT_LE(compressed.size(), maker_->max_member_bytes(bytes));
      EXPECT_EQ(inflated(compressed).value(), original);
      EXPECT_EQ(inflated(compressed, 1).value(), original);
      EXPECT_LE(original.size(), kMostGzipInflation * compressed.size());
    }
  }
}

TEST_F(Gzip, AMemberDependsOnlyOnItsBytes) {
  Bytes text;
  for (const std::byte one : noise(300000)) text.push_back(one & std::byte{0x0f});
  const Bytes compressed = member(text);
  for (const size_t cut : {1000U, 65536U, 70000U}) EXPECT_EQ(member(text, cut), compressed) << cut;
  const Bytes header(compressed.begin(), compressed.begin() + 10);
  const auto byte = [](unsigned value) { return static_cast<std::byte>(value); };
  EXPECT_EQ(header, (Bytes{byte(0x1f), byte(0x8b), byte(8), byte(0), byte(0), byte(0), byte(0), byte(0),
                           byte(0), byte(255)}));
}

TEST_F(Gzip, AfterAFailedSinkTheNextMemberIsCorrect) {
  const Bytes original = noise(500000);
  const Bytes compressed = member(original);
  const std::span<const std::byte> all(original);
  int calls = 0;
  const auto failed = maker_->make({&all, 1}, [&](std::span<const std::byte>) -> Result<void> {
    if (++calls < 3) return success();
    return make_error(Errc::no_space, "full");
  });
  EXPECT_EQ(failed.error().code, Errc::no_space);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(member(original), compressed);
}

TEST_F(Gzip, DamageIsDetected) {
  const Bytes original = noise(300);
  Bytes compressed = member(original);
  for (size_t cut = 0; cut < compressed.size(); ++cut)
    EXPECT_EQ(inflated(std::span(compressed).first(cut)).error().code, Errc::truncated) << cut;
  size_t detected = 0;
  for (size_t bit = 0; bit < 8 * compressed.size(); ++bit) {
    compressed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto out = inflated(compressed);
    if (out.ok()) {
      EXPECT_EQ(*out, original) << bit;
    } else {
      ++detected;
    }
    compressed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
  EXPECT_GE(detected, 8 * (compressed.size() - 8)) << "no checksum covers time, system and padding";
  EXPECT_EQ(inflated(compressed).value(), original) << "damage before it spoils the next";
}

}  // namespace
}  // namespace penstock
