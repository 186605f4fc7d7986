// What every mini-app promises (miniapp.hpp): miniapp_contract_test NAME. Exits 77 for one that this build
// lacks.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "datagen/codec/jpeg.hpp"
#include "io_backends/base/random.hpp"
#include "miniapps/miniapp.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/pipeline/sampler.hpp"

namespace penstock {
namespace {

const MiniAppInfo* tested = nullptr;

std::unique_ptr<Treatment> treatment() {
  const Options options = Options::parse(tested->options, {}, "option").value();
  return tested->make(options, {}).value();
}

// A small sample of what the app takes.
std::vector<std::byte> good_sample() {
  Image image{40, 30, std::vector<std::uint8_t>(std::size_t{40} * 30 * 3)};
  const RandomStream random(1, 2);
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<std::uint8_t>(random.bits(i / 30));
  JpegEncoder encoder;
  const std::span<const std::byte> bytes = encoder.encode(image, 90).value();
  return {bytes.begin(), bytes.end()};
}

LapClock laps_of(const Treatment& how) {
  LapClock laps(kLapFirstOwn + how.stages().size());
  laps.restart();
  return laps;
}

TEST(MiniAppContract, DescribesItself) {
  EXPECT_FALSE(tested->summary.empty());
  EXPECT_FALSE(tested->reproduces.empty());
  EXPECT_GT(tested->defaults.batch, 0U);
  EXPECT_TRUE(make_accelerator(tested->defaults.accelerator).ok());
  EXPECT_TRUE(parse_shuffle(tested->defaults.shuffle).ok());
}

TEST(MiniAppContract, HasATreatmentByDefault) {
  const auto how = treatment();
  EXPECT_FALSE(how->layout().empty());
  EXPECT_EQ(how->stages().empty(), how->slot_bytes() == 0) << "what is left as it is stored has no stages";
  EXPECT_EQ(how->transform().value() == nullptr, how->slot_bytes() == 0);
  for (const std::string_view stage : how->stages()) {
    EXPECT_NE(stage, "read") << "the loader's own";
    EXPECT_NE(stage, "accelerator") << "the consumer's own";
  }
}

TEST(MiniAppContract, FillsItsSlotAndNothingElse) {
  const auto how = treatment();
  if (how->slot_bytes() == 0) GTEST_SKIP() << "samples are left as they are stored";
  ASSERT_EQ(tested->codec.substr(0, 4), "jpeg") << "teach this test what a sample of the new codec is";
  const auto transform = how->transform().value();
  constexpr std::size_t kGuard = 64;
  const std::size_t bytes = how->slot_bytes();
  std::array<std::vector<std::byte>, 2> slots;
  for (std::size_t round = 0; round < 2; ++round) {
    const auto fill = static_cast<std::byte>(round == 0 ? 0xff : 0xa5);
    slots[round].assign(bytes + kGuard, fill);
    LapClock laps = laps_of(*how);
    const Result<void> applied =
        transform->apply({0, 0}, good_sample(), std::span(slots[round]).first(bytes), laps);
    ASSERT_TRUE(applied.ok()) << applied.error().what;
    for (std::size_t i = 0; i < kGuard; ++i)
      ASSERT_EQ(slots[round][bytes + i], fill) << "wrote behind its slot";
    for (std::size_t stage = 0; stage < how->stages().size(); ++stage)
      EXPECT_GT(laps.spent_ns()[kLapFirstOwn + stage], 0U) << how->stages()[stage] << " is not timed";
    slots[round].resize(bytes);
  }
  EXPECT_EQ(slots[0], slots[1]) << "left a part of its slot as it was, or depends on what came before";
}

TEST(MiniAppContract, RefusesWhatItDoesNotTakeAndGoesOn) {
  const auto how = treatment();
  if (how->slot_bytes() == 0) GTEST_SKIP() << "it takes everything";
  const auto transform = how->transform().value();
  std::vector<std::byte> slot(how->slot_bytes());
  const std::vector<std::byte> good = good_sample();
  std::vector<std::byte> half(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(good.size() / 2));
  const std::vector<std::byte> noise(1000, std::byte{0x42});
  for (const std::vector<std::byte>& bad : {std::vector<std::byte>{}, noise, half}) {
    LapClock laps = laps_of(*how);
    const Result<void> applied = transform->apply({0, 0}, bad, slot, laps);
    ASSERT_FALSE(applied.ok()) << bad.size() << " bytes";
    EXPECT_TRUE(applied.error().code == Errc::corrupt || applied.error().code == Errc::truncated);
    EXPECT_TRUE(transform->apply({0, 0}, good, slot, laps).ok()) << "a bad sample spoils the next";
  }
}

TEST(MiniAppContract, RefusesUnknownOptions) {
  const OptionWord word{"no_such_option", "1"};
  EXPECT_FALSE(Options::parse(tested->options, {&word, 1}, "option").ok());
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MINIAPP\n", argv[0]);
    return 2;
  }
  const auto found = penstock::miniapp_registry().find(argv[1]);
  if (!found.ok()) {
    std::printf("%s\n", found.error().message().c_str());
    return penstock::exit_code(found.error().code);
  }
  penstock::tested = *found;
  return RUN_ALL_TESTS();
}
