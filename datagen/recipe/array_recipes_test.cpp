// Tests that the recipes of arrays and text have the sizes, shapes and labels of the real data sets.
// recipe_contract_test.cpp tests what all recipes have in common.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "datagen/recipe/recipe.hpp"

namespace penstock {
namespace {

std::unique_ptr<Recipe> recipe_of(std::string_view name, const std::vector<OptionWord>& settings = {},
                                  uint64_t samples = 0) {
  const RecipeInfo* info = recipe_registry().find(name).value();
  return info->make({samples, 7}, Options::parse(info->options, settings, "setting").value()).value();
}

void expect_refused(std::string_view name, const OptionWord& word) {
  const RecipeInfo* info = recipe_registry().find(name).value();
  const auto options = Options::parse(info->options, {&word, 1}, "setting");
  const auto made = options.ok() ? info->make({1, 7}, *options) : options.error();
  ASSERT_FALSE(made.ok()) << name << " " << word.key << "=" << word.value;
  EXPECT_EQ(made.error().code, Errc::invalid_argument);
  EXPECT_NE(made.error().what.find(word.key), std::string::npos) << made.error().what;
}

TEST(Malware, HasTheFiguresOfTheRealDataSet) {
  const auto recipe = recipe_of("malware");
  std::vector<double> sizes;
  std::map<uint32_t, uint64_t> classes;
  double total = 0, small_count = 0, small_bytes = 0;
  SamplePlan plan;
  for (uint64_t i = 0; i < recipe->samples(); ++i) {
    recipe->plan(i, plan);
    const auto bytes = double(recipe->bytes_expected(i));
    sizes.push_back(bytes);
    total += bytes;
    if (bytes < 2e6) ++small_count, small_bytes += bytes;
    ++classes[plan.label];
  }
  std::sort(sizes.begin(), sizes.end());
  EXPECT_NEAR(sizes[sizes.size() / 2] / 4e6, 1.0, 0.03);
  EXPECT_NEAR(total / 48e9, 1.0, 0.02);
  EXPECT_NEAR(small_count / 4420, 1.0, 0.02);
  EXPECT_NEAR(small_bytes / 3.7e9, 1.0, 0.03);
  EXPECT_EQ(classes.size(), 9U);
  EXPECT_EQ(classes[4], 42U);
  EXPECT_EQ(recipe->label_names()[4], "Simda");
}

TEST(Malware, IsADumpWithConsecutiveAddresses) {
  const auto recipe = recipe_of("malware", {{"median", "20kB"}}, 10);
  const auto maker = recipe->maker().value();
  const std::vector<std::byte> bytes = joined(maker->make(3).value().front());
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t line = 0;
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = text.find('\n', at);
    ASSERT_EQ(end - at, 56U);
    EXPECT_EQ(std::stoul(text.substr(at, 8), nullptr, 16), 0x401000 + 16 * line);
    for (size_t i = 8; i < 56; ++i)
      ASSERT_EQ(i % 3 == 2 ? text[at + i] == ' ' : std::isxdigit(text[at + i]) != 0, true)
          << text.substr(at, 56);
    at = end + 1;
  }
  EXPECT_GT(line, 10U);
}

TEST(Cifar10, IsFiftyThousandAndTenThousandInTenClasses) {
  const auto recipe = recipe_of("cifar10");
  EXPECT_EQ(recipe->samples(), 60'000U);
  EXPECT_EQ(recipe->label_names().size(), 10U);
  EXPECT_EQ(recipe->label_names()[6], "frog");
  EXPECT_EQ(field_bytes(recipe->fields().front()), 3072U);
  // The planes must be pictures and not noise: a pixel is similar to the one below it.
  const auto maker = recipe->maker().value();
  double squares = 0, steps = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    const std::vector<std::byte> planes = joined(maker->make(i).value().front());
    double sum = 0;
    for (size_t at = 0; at < 1024; ++at) sum += std::to_integer<int>(planes[at]);
    for (size_t at = 0; at + 32 < 1024; ++at) {
      const double here = std::to_integer<int>(planes[at]), below = std::to_integer<int>(planes[at + 32]);
      squares += (here - sum / 1024) * (here - sum / 1024);
      steps += (here - below) * (here - below);
    }
  }
  EXPECT_LT(steps, squares);  // in white noise, `steps` would be twice `squares`
}

TEST(CosmoFlow, SizesAreThoseOfTheWorkload) {
  const auto recipe = recipe_of("cosmoflow");
  double sum = 0;
  for (uint64_t i = 0; i < 2048; ++i) {
    sum += double(recipe->bytes_expected(i));
    EXPECT_NEAR(double(recipe->bytes_expected(i)), 2'828'486, 6 * 71'311);
  }
  EXPECT_NEAR(sum / 2048, 2'828'486, 2000);
}

TEST(HepCnn, HasTheNineDataSetsAndBothSplits) {
  const auto training = recipe_of("hepcnn");
  EXPECT_EQ(training->samples(), 726'016U);
  ASSERT_EQ(training->fields().size(), 9U);
  EXPECT_EQ(training->fields()[0].name, "data");
  EXPECT_EQ(field_bytes(training->fields()[0]) * 709, 426'897'408U);
  const auto validation = recipe_of("hepcnn", {{"split", "validation"}});
  EXPECT_EQ(validation->samples(), 96'256U);
  EXPECT_EQ(field_bytes(validation->fields()[0]) * 94, 56'598'528U);
  const RecipeInfo* info = recipe_registry().find("hepcnn").value();
  const OptionWord split{"split", "validation"};
  EXPECT_EQ(info->format_settings(Options::parse(info->options, {&split, 1}, "setting").value())[0].value,
            "94");
  // The plan and the data of a sample have the same label.
  const auto small = recipe_of("hepcnn", {{"shape", "3,8,8"}}, 200);
  const auto maker = small->maker().value();
  SamplePlan plan;
  uint32_t signals = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    small->plan(i, plan);
    const std::vector<std::byte> label = joined(maker->make(i).value()[1]);
    EXPECT_EQ(std::to_integer<uint32_t>(label[0]), plan.label);
    signals += plan.label;
  }
  EXPECT_NEAR(signals, 100, 40);
}

TEST(Climate, HasTheShapesOfTheRealDataSet) {
  const auto recipe = recipe_of("climate");
  ASSERT_EQ(recipe->fields().size(), 3U);
  EXPECT_EQ(field_bytes(recipe->fields()[0]), 56'623'104U);
  EXPECT_TRUE(recipe->fields()[0].one_chunk);
  EXPECT_EQ(field_bytes(recipe->fields()[1]), 3'538'944U);
  EXPECT_EQ(field_bytes(recipe->fields()[2]), 256U);
  ASSERT_EQ(recipe->companions().size(), 1U);
  EXPECT_EQ(recipe->companions()[0].name, "stats");
  EXPECT_EQ(recipe->companions()[0].fields[0].name, "climate/stats");
}

// The expected moments, computed in the simplest way.
std::vector<float> moments_of(const std::vector<float>& values, size_t channels) {
  std::vector<float> out;
  const size_t each = values.size() / channels;
  for (size_t channel = 0; channel < channels; ++channel) {
    const std::span<const float> numbers = std::span(values).subspan(channel * each, each);
    double sum = 0;
    for (const float value : numbers) sum += double(value);
    const double mean = sum / double(each);
    double squares = 0;
    for (const float value : numbers) squares += (value - mean) * (value - mean);
    out.insert(out.end(), {float(mean), *std::ranges::max_element(numbers),
                           *std::ranges::min_element(numbers), float(std::sqrt(squares / double(each)))});
  }
  return out;
}

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

TEST(Climate, StatisticsAreThoseOfTheData) {
  // These shapes give channels of whole blocks, channels of parts of a block, channels that begin within a
  // stamp, and the shape of the real data set. noise_stock.hpp explains blocks and stamps.
  for (const char* const shape : {"2,64,64", "5,7,11", "3,1,1027", "4,32,48", "1,1,1", "16,768,1152"}) {
    const auto recipe = recipe_of("climate", {{"shape", shape}}, 3);
    const auto maker = recipe->maker().value();
    const auto channels = size_t(recipe->fields()[0].shape.front());
    const std::vector<float> whole_stock = floats_of(recipe->companions()[0].bytes[0]);
    for (const uint64_t index : {2U, 0U}) {
      const auto made = maker->make(index).value();
      const std::vector<float> recorded = floats_of(joined(made[2]));
      const std::vector<float> expected = moments_of(floats_of(joined(made[0])), channels);
      ASSERT_EQ(recorded.size(), channels * 4);
      ASSERT_EQ(whole_stock.size(), recorded.size());
      for (size_t i = 0; i < recorded.size(); i += 4) {
        EXPECT_NEAR(recorded[i], expected[i], 1e-6) << shape;
        EXPECT_EQ(recorded[i + 1], expected[i + 1]) << shape;
        EXPECT_EQ(recorded[i + 2], expected[i + 2]) << shape;
        EXPECT_NEAR(recorded[i + 3], expected[i + 3], 1e-6) << shape;
        EXPECT_LE(recorded[i + 1], whole_stock[i + 1]);
        EXPECT_GE(recorded[i + 2], whole_stock[i + 2]);
        if (channels == 16) {
          EXPECT_NEAR(recorded[i], whole_stock[i], 0.05);
          EXPECT_NEAR(recorded[i + 3], whole_stock[i + 3], 0.05);
        }
      }
    }
  }
}

TEST(UNet3D, SizesAreThoseOfTheWorkload) {
  const auto recipe = recipe_of("unet3d", {}, 1024);
  double sum = 0;
  for (uint64_t i = 0; i < 1024; ++i) {
    sum += double(recipe->bytes_expected(i));
  }
  EXPECT_NEAR(sum / 1024 / 146'600'628, 1.0, 0.01);
  EXPECT_EQ(recipe->fields()[0].name, "x");
  EXPECT_EQ(recipe->fields()[1].name, "y");
  // DLIO's arrays have the sample as their last dimension: x[..., sample].
  EXPECT_EQ(recipe->fields()[0].trailing_ones, 2U);
  EXPECT_EQ(recipe->fields()[1].shape, std::vector<uint64_t>{1});
}

TEST(ArrayRecipes, SettingsOutOfRangeAreNamed) {
  expect_refused("malware", {"median", "1kB"});
  expect_refused("malware", {"median", "1GB"});
  expect_refused("climate", {"shape", "3,4"});
  expect_refused("climate", {"shape", "16,0,4"});
  expect_refused("hepcnn", {"shape", "100000,100000,100000"});
  expect_refused("hepcnn", {"split", "test"});
  expect_refused("cosmoflow", {"mean", "0"});
  expect_refused("cosmoflow", {"mean", "9GB"});
  expect_refused("cosmoflow", {"deviation", "3MB"});
}

}  // namespace
}  // namespace penstock
