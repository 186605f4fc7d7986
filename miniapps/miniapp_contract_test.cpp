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
#include "datagen/generate/generate_testing.hpp"
#include "datagen/reading/sampler.hpp"
#include "io_backends/core/random.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/train/miniapp.hpp"

namespace penstock {
namespace {

const MiniAppInfo* tested = nullptr;

std::vector<std::byte> picture() {
  Image image{40, 30, std::vector<std::uint8_t>(std::size_t{40} * 30 * 3)};
  const RandomStream random(1, 2);
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<std::uint8_t>(random.bits(i / 30));
  JpegEncoder encoder;
  const std::span<const std::byte> bytes = encoder.encode(image, 90).value();
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> dump() {
  const std::string line = "00401000 56 8D 44 24 08 50 8B F1 E8 1C 1B 00 00 C7 06 08\n";
  const std::string text = line + line + line;
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> record() {
  std::vector<std::byte> record(std::size_t{3} * 32 * 32);
  for (std::size_t i = 0; i < record.size(); ++i) record[i] = static_cast<std::byte>(i * 7);
  return record;
}

// A transform, and a small sample of what it takes, which half of is none.
struct Taken {
  std::unique_ptr<Transform> how;
  std::vector<std::byte> sample{};
};

// Of an app that loads whole files: those that the recipe of the same name makes.
Taken taken_of_files() {
  const bool weather = tested->name == "climate";
  EXPECT_TRUE(weather || tested->name == "hepcnn")
      << "teach this test how small files of the new app are made";
  const std::vector<OptionWord> settings =
      weather ? std::vector<OptionWord>{{"shape", "11,8,12"}}
              : std::vector<OptionWord>{{"shape", "3,8,8"}, {"samples_per_file", "5"}};
  const Generation made = plan_generation(tested->name, "", settings, {.samples = 10}, 7).value();
  Tier place =
      tier(std::string("contract-") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
  EXPECT_TRUE(make(place, made).ok());
  const Manifest samples = Manifest::load(*place.backend, kManifestName).value();
  const Options options = Options::parse(tested->options, {}, "option").value();
  FilePlan plan =
      tested->plan_files({.options = options, .backend = *place.backend, .samples = samples}).value();
  std::string scratch;
  const std::string bytes = content(*place.backend, plan.training.files.manifest.object_name(0, scratch));
  const auto file = std::as_bytes(std::span(bytes));
  return {std::move(plan.training.app_transform), {file.begin(), file.end()}};
}

Taken taken() {
  if (tested->plan_files != nullptr) return taken_of_files();
  const Options options = Options::parse(tested->options, {}, "option").value();
  Taken taken{tested->make(options, {}).value()};
  if (taken.how->slot_bytes() == 0) return taken;
  EXPECT_TRUE(tested->pictures || tested->name == "malware" || tested->name == "cifar")
      << "teach this test what a sample of the new app is";
  taken.sample = tested->pictures ? picture() : tested->name == "cifar" ? record() : dump();
  return taken;
}

StageTimer timer_of(const Transform& how) {
  StageTimer timer(kPartFirstOwn + how.stages().size());
  timer.restart();
  return timer;
}

TEST(MiniAppContract, TreatsSamplesOrFiles) {
  EXPECT_NE(tested->make == nullptr, tested->plan_files == nullptr);
}

TEST(MiniAppContract, DescribesItself) {
  EXPECT_FALSE(tested->summary.empty());
  EXPECT_FALSE(tested->reproduces.empty());
  EXPECT_GT(tested->defaults.batch, 0U);
  EXPECT_TRUE(make_accelerator(tested->defaults.accelerator).ok());
  EXPECT_TRUE(parse_shuffle(tested->defaults.shuffle).ok());
}

TEST(MiniAppContract, HasATransformByDefault) {
  const auto how = taken().how;
  EXPECT_FALSE(how->layout().empty());
  EXPECT_EQ(how->stages().empty(), how->slot_bytes() == 0) << "what is left as it is stored has no stages";
  EXPECT_EQ(how->transform().value() == nullptr, how->slot_bytes() == 0);
  for (const std::string_view stage : how->stages()) {
    EXPECT_NE(stage, "read") << "the loader's own";
    EXPECT_NE(stage, "accelerator") << "the consumer's own";
  }
}

TEST(MiniAppContract, FillsItsSlotAndNothingElse) {
  const auto [how, good] = taken();
  if (how->slot_bytes() == 0) GTEST_SKIP() << "samples are left as they are stored";
  const auto transform = how->transform().value();
  constexpr std::size_t kGuard = 64;
  const std::size_t bytes = how->slot_bytes();
  std::array<std::vector<std::byte>, 2> slots;
  for (std::size_t round = 0; round < 2; ++round) {
    const auto fill = static_cast<std::byte>(round == 0 ? 0xff : 0xa5);
    slots[round].assign(bytes + kGuard, fill);
    StageTimer timer = timer_of(*how);
    const Result<void> applied = transform->apply({0, 0}, good, std::span(slots[round]).first(bytes), timer);
    ASSERT_TRUE(applied.ok()) << applied.error().what;
    for (std::size_t i = 0; i < kGuard; ++i)
      ASSERT_EQ(slots[round][bytes + i], fill) << "wrote behind its slot";
    for (std::size_t stage = 0; stage < how->stages().size(); ++stage)
      EXPECT_GT(timer.spent_ns()[kPartFirstOwn + stage], 0U) << how->stages()[stage] << " is not timed";
    slots[round].resize(bytes);
  }
  EXPECT_EQ(slots[0], slots[1]) << "left a part of its slot as it was, or depends on what came before";
}

TEST(MiniAppContract, RefusesWhatItDoesNotTakeAndGoesOn) {
  const auto [how, good] = taken();
  if (how->slot_bytes() == 0) GTEST_SKIP() << "it takes everything";
  const auto transform = how->transform().value();
  std::vector<std::byte> slot(how->slot_bytes());
  std::vector<std::byte> half(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(good.size() / 2));
  const std::vector<std::byte> noise(1000, std::byte{0x42});
  for (const std::vector<std::byte>& bad : {std::vector<std::byte>{}, noise, half}) {
    StageTimer timer = timer_of(*how);
    const Result<void> applied = transform->apply({0, 0}, bad, slot, timer);
    ASSERT_FALSE(applied.ok()) << bad.size() << " bytes";
    EXPECT_TRUE(applied.error().code == Errc::corrupt || applied.error().code == Errc::truncated);
    EXPECT_TRUE(transform->apply({0, 0}, good, slot, timer).ok()) << "a bad sample spoils the next";
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
