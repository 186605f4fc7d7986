// Tests what every mini-app promises (miniapp.hpp): miniapp_contract_test NAME. Exits with 77 if this build
// does not have the mini-app.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "datagen/codec/jpeg_encoder.hpp"
#include "datagen/generate/generate_testing.hpp"
#include "datagen/reading/sampler.hpp"
#include "datagen/recipe/recipe.hpp"
#include "io_backends/core/random.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {
namespace {

const MiniAppInfo* tested_app = nullptr;

std::vector<std::byte> picture() {
  Image image{40, 30, std::vector<uint8_t>(size_t{40} * 30 * 3)};
  const RandomStream random(1, 2);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = uint8_t(random.bits(i / 30));
  JpegEncoder encoder;
  const std::span<const std::byte> bytes = encoder.encode(image, 90).value();
  return {bytes.begin(), bytes.end()};
}

// A transform and a small valid sample for it. The first half of the sample alone is not valid.
struct TransformAndSample {
  Transform transform;
  std::vector<std::byte> sample{};
};

// Takes the sample from a small corpus of the app's recipe. For an app that loads whole files, it is the
// first file.
TransformAndSample sample_of_recipe(const TrainRequest& request) {
  const RecipeInfo* const recipe = recipe_registry().find(tested_app->recipe).value();
  std::vector<OptionWord> small;
  for (const RecipeSetting& setting : recipe->small_settings)
    small.push_back({std::string(setting.key), std::string(setting.value)});
  Tier place =
      tier(std::string("contract-") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
  EXPECT_TRUE(make(place, plan_generation(recipe->name, "", small, {.samples = 10}, 7).value()).ok());
  Backend& backend = *place.backend;
  Manifest manifest = Manifest::load(backend, kManifestName).value();
  const Corpus corpus{
      .tier = std::move(place), .manifest = std::move(manifest), .name = "contract", .scan = std::nullopt};
  const Manifest& samples = corpus.manifest;
  std::string scratch;
  const SampleEntry& first = samples.sample(0);
  const std::string object = content(backend, samples.object_name(first.object, scratch));
  const auto bytes = std::as_bytes(std::span(object));
  if (tested_app->plan_files == nullptr) {
    const auto sample = bytes.subspan(first.offset, first.length);
    return {tested_app->make(request).value(), {sample.begin(), sample.end()}};
  }
  FileInput plan = tested_app->plan_files(request, corpus, nullptr).value();
  return {std::move(plan.training.app_transform), {bytes.begin(), bytes.end()}};
}

TransformAndSample transform_and_sample() {
  TrainRequest request;
  request.app_options = Options::parse(tested_app->options, {}, "option").value();
  if (!tested_app->recipe.empty()) return sample_of_recipe(request);
  TransformAndSample pair{tested_app->make(request).value()};
  if (tested_app->takes_pictures) pair.sample = picture();
  EXPECT_TRUE(tested_app->takes_pictures || pair.transform.slot_bytes == 0)
      << "an app of other samples names their recipe";
  return pair;
}

StageTimer timer_of(const Transform& transform) {
  StageTimer timer(kFirstOwnPart + transform.stages.size());
  timer.restart();
  return timer;
}

TEST(MiniAppContract, TransformsEitherSamplesOrFiles) {
  EXPECT_NE(tested_app->make == nullptr, tested_app->plan_files == nullptr);
}

TEST(MiniAppContract, DescribesItself) {
  EXPECT_FALSE(tested_app->summary.empty());
  EXPECT_FALSE(tested_app->reproduces.empty());
  EXPECT_GT(tested_app->defaults.batch, 0U);
  EXPECT_TRUE(make_accelerator(tested_app->defaults.accelerator).ok());
  EXPECT_TRUE(parse_shuffle(tested_app->defaults.shuffle).ok());
}

TEST(MiniAppContract, HasATransformByDefault) {
  const auto transform = transform_and_sample().transform;
  EXPECT_FALSE(transform.layout.empty());
  EXPECT_EQ(transform.stages.empty(), transform.slot_bytes == 0)
      << "what is left as it is stored has no stages";
  EXPECT_EQ(transform.make == nullptr, transform.slot_bytes == 0);
  for (const std::string_view stage : transform.stages) {
    EXPECT_NE(stage, "read") << "the loader's own";
    EXPECT_NE(stage, "accelerator") << "the consumer's own";
  }
}

TEST(MiniAppContract, FillsItsSlotAndNothingElse) {
  const auto [transform, good] = transform_and_sample();
  if (transform.slot_bytes == 0) GTEST_SKIP() << "samples are left as they are stored";
  const auto sample_transform = transform.make().value();
  constexpr size_t kGuard = 64;
  const size_t bytes = transform.slot_bytes;
  std::array<std::vector<std::byte>, 2> slots;
  for (size_t round = 0; round < 2; ++round) {
    const auto fill = static_cast<std::byte>(round == 0 ? 0xff : 0xa5);
    slots[round].assign(bytes + kGuard, fill);
    StageTimer timer = timer_of(transform);
    const Result<void> applied =
        sample_transform->apply({0, 0}, good, std::span(slots[round]).first(bytes), timer);
    ASSERT_TRUE(applied.ok()) << applied.error().what;
    for (size_t i = 0; i < kGuard; ++i) ASSERT_EQ(slots[round][bytes + i], fill) << "wrote behind its slot";
    for (size_t stage = 0; stage < transform.stages.size(); ++stage)
      EXPECT_GT(timer.spent_ns()[kFirstOwnPart + stage], 0U) << transform.stages[stage] << " is not timed";
    slots[round].resize(bytes);
  }
  EXPECT_EQ(slots[0], slots[1]) << "left a part of its slot as it was, or depends on what came before";
}

TEST(MiniAppContract, RefusesInvalidSamplesAndContinues) {
  const auto [transform, good] = transform_and_sample();
  if (transform.slot_bytes == 0) GTEST_SKIP() << "it takes everything";
  const auto sample_transform = transform.make().value();
  std::vector<std::byte> slot(transform.slot_bytes);
  std::vector<std::byte> half(good.begin(), good.begin() + ptrdiff_t(good.size() / 2));
  half.push_back(std::byte{0});  // half of a text may be a valid text
  const std::vector<std::byte> noise(1000, std::byte{0x42});
  for (const std::vector<std::byte>& bad : {std::vector<std::byte>{}, noise, half}) {
    StageTimer timer = timer_of(transform);
    const Result<void> applied = sample_transform->apply({0, 0}, bad, slot, timer);
    ASSERT_FALSE(applied.ok()) << bad.size() << " bytes";
    EXPECT_TRUE(applied.error().code == Errc::corrupt || applied.error().code == Errc::truncated);
    EXPECT_TRUE(sample_transform->apply({0, 0}, good, slot, timer).ok()) << "a bad sample spoils the next";
  }
}

TEST(MiniAppContract, RefusesUnknownOptions) {
  const OptionWord word{"no_such_option", "1"};
  EXPECT_FALSE(Options::parse(tested_app->options, {&word, 1}, "option").ok());
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
  penstock::tested_app = *found;
  return RUN_ALL_TESTS();
}
