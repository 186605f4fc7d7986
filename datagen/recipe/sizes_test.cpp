#include "datagen/recipe/sizes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datagen/recipe/recipe.hpp"

namespace penstock {
namespace {

TEST(Sizes, NormalBytesHaveTheirMeanAndDeviation) {
  const NormalSizes wanted{146'600'628, 68'341'808};
  double sum = 0, squares = 0;
  constexpr uint64_t kCount = 8192;
  for (uint64_t i = 0; i < kCount; ++i) {
    const uint64_t drawn = normal_bytes(wanted, RandomStream(7, "test"), i);
    EXPECT_GE(drawn, uint64_t(wanted.mean / 16));
    const auto bytes = double(drawn);
    sum += bytes;
    squares += bytes * bytes;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean / wanted.mean, 1.0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / kCount - mean * mean) / wanted.deviation, 1.0, 0.03);
}

TEST(Sizes, RangesInMessagesHaveUnits) {
  const OptionSpec table[] = {mean_option("1MB"), kDeviationOption};
  EXPECT_NE(table[0].help.find("1 byte to 8 GB"), std::string_view::npos);
  const auto sizes_of = [&](std::string value) {
    const std::vector<OptionWord> words{{"mean", std::move(value)}};
    return normal_sizes(Options::parse(table, words, "option").value(), {.mean = 100, .deviation = 10});
  };
  EXPECT_EQ(sizes_of("1")->mean, 1.0);
  EXPECT_EQ(sizes_of("8GB")->mean, 8e9);
  const auto larger = sizes_of("8000000001");
  ASSERT_FALSE(larger.ok());
  EXPECT_EQ(larger.error().code, Errc::invalid_argument);
  EXPECT_NE(larger.error().what.find("must be 1 byte to 8 GB"), std::string::npos) << larger.error().what;
}

TEST(ClassMix, ClassesHaveTheirSizesAndSamplesUniqueNumbers) {
  const std::vector<ClassCount> classes{{"a", 5}, {"b", 1}, {"c", 14}};
  const ClassMix mix(classes, 7);
  std::set<std::pair<uint32_t, uint64_t>> positions;
  std::map<uint32_t, uint64_t> counts;
  for (uint64_t i = 0; i < 60; ++i) {
    const ClassMix::ClassPosition position = mix.at(i);
    EXPECT_TRUE(positions.emplace(position.label, position.number).second);
    ++counts[position.label];
    EXPECT_LT(position.number, 3 * classes[position.label].samples);
  }
  EXPECT_EQ(counts, (std::map<uint32_t, uint64_t>{{0, 15}, {1, 3}, {2, 42}}));
  EXPECT_EQ(mix.names(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Caltech101, HasTheClassesOfTheRealDataSet) {
  const RecipeInfo* info = recipe_registry().find("caltech101").value();
  const auto recipe = info->make({0, 7}, Options::parse(info->options, {}, "setting").value()).value();
  const std::vector<std::string> names = recipe->label_names();
  EXPECT_EQ(names.size(), 102U);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  std::map<std::string, uint64_t> counts;
  SamplePlan plan;
  for (uint64_t i = 0; i < recipe->samples(); ++i) {
    recipe->plan(i, plan);
    EXPECT_TRUE(plan.key.starts_with(names[plan.label] + "/image_")) << plan.key;
    ++counts[names[plan.label]];
  }
  EXPECT_EQ(counts["airplanes"], 800U);
  EXPECT_EQ(counts["inline_skate"], 31U);
  EXPECT_EQ(counts["BACKGROUND_Google"], 467U);
}

}  // namespace
}  // namespace penstock
