#include "datagen/generate/size_for.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <string>

#include "datagen/generate/generation.hpp"

namespace penstock {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30U;

TEST(SizeFor, StepsOrMemoryWhicheverIsMore) {
  const SizeFor steps = parse_size_for("unet3d,accelerators=8,hosts=1", 512 * kGiB).value();
  EXPECT_EQ(samples_for(steps, 146'600'628, 1).samples, 28'000U);  // 500 steps x 7 samples x 8 accelerators
  const SizeFor memory = parse_size_for("unet3d,accelerators=8,hosts=4,memory=1TiB", 1).value();
  // 5 x 4 hosts x 2^40 / 146,600,628, rounded up
  EXPECT_EQ(samples_for(memory, 146'600'628, 1).samples, 150'001U);
  const SizeFor batch = parse_size_for("resnet50,batch=64,accelerators=2", kGiB).value();
  EXPECT_EQ(samples_for(batch, 114'660, 1251).samples, 65'052U);  // 500 x 64 x 2, rounded up to whole files
}

TEST(SizeFor, SaysHowItCameToTheNumber) {
  const SizeFor rule = parse_size_for("cosmoflow,accelerators=3,hosts=2", 64 * kGiB).value();
  const std::string explanation = samples_for(rule, 2'828'486, 1).explanation;
  for (const char* part : {"500 steps", "batch 1 ", "3 accelerators", "2 hosts", "68719476736", "2828486"})
    EXPECT_NE(explanation.find(part), std::string::npos) << part << " in: " << explanation;
}

TEST(SizeFor, ThePrintedFiguresGiveThePrintedNumber) {
  for (const uint64_t memory : {kGiB, 23 * kGiB + kGiB / 2, 24 * kGiB - 1, 512 * kGiB + 12345})
    for (const double mean : {147'178'916.0, 2'828'486.4, 114'660.0}) {
      const SizeFor rule = parse_size_for("unet3d,accelerators=8,hosts=3", memory).value();
      const std::string text = samples_for(rule, mean, 1).explanation;
      const std::regex pattern(R"(; (\d+) x (\d+) hosts x (\d+) bytes / ([\d.]+) bytes per sample = (\d+);)");
      std::smatch parts;
      ASSERT_TRUE(std::regex_search(text, parts, pattern)) << text;
      const auto number = [&](size_t part) { return std::stod(parts[part]); };
      EXPECT_EQ(std::ceil(number(1) * number(2) * number(3) / number(4)), number(5)) << text;
    }
}

TEST(SizeFor, WrongArgumentsAreNamed) {
  const auto refused = [](std::string_view text, std::string_view named) {
    const auto rule = parse_size_for(text, kGiB);
    ASSERT_FALSE(rule.ok()) << text;
    EXPECT_EQ(rule.error().code, Errc::invalid_argument);
    EXPECT_NE(rule.error().what.find(named), std::string::npos) << rule.error().what;
  };
  refused("", "unet3d");
  refused("unet4d,accelerators=1", "unet3d");
  refused("unet3d", "accelerators");
  refused("unet3d,accelerators=0", "accelerators");
  refused("unet3d,accelerators=2000000", "accelerators");
  refused("unet3d,accelerator=2", "accelerators");
  refused("unet3d,accelerators", "accelerators");
  refused("unet3d,accelerators=1,hosts=", "hosts");
  refused("unet3d,accelerators=1,,", "");
  EXPECT_EQ(parse_size_for("unet3d,accelerators=1", 0).error().code, Errc::invalid_argument);
}

TEST(SizeFor, CountsADataSetByItsRecipesSamples) {
  const SizeFor rule = parse_size_for("resnet50,accelerators=1,batch=10", kGiB).value();
  const auto planned = plan_generation("resnet50", "", {}, {.size_for = rule}, 7);
  ASSERT_TRUE(planned.ok()) << planned.error().what;
  // 5 x 1 GiB / 114,660 bytes = 46,823 samples in 38 files of 1251.
  EXPECT_EQ(planned->state.samples, 38U * 1251);
  EXPECT_EQ(planned->objects, 38U);
  EXPECT_NE(planned->size_explanation.find("1251"), std::string::npos) << planned->size_explanation;
  EXPECT_EQ(plan_generation("resnet50", "", {}, {.samples = 3, .size_for = rule}, 7).error().code,
            Errc::invalid_argument);
}

TEST(SizeFor, DoubtsTheSamplesOfAnotherRecipe) {
  EXPECT_EQ(size_for_warning("unet3d", "unet3d"), "");
  const std::string warning = size_for_warning("unet3d", "imagenet");
  for (const char* const word : {"--size-for unet3d", "recipe is 'unet3d'", "recipe 'imagenet'"})
    EXPECT_NE(warning.find(word), std::string::npos) << warning;
}

}  // namespace
}  // namespace penstock
