#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "datagen/codec/jpeg_encoder.hpp"
#include "datagen/codec/png.hpp"
#include "datagen/recipe/picture.hpp"
#include "datagen/recipe/recipe.hpp"
#include "datagen/recipe/scenery.hpp"

namespace penstock {
namespace {

Result<std::unique_ptr<Recipe>> imagenet(const std::vector<OptionWord>& settings, uint64_t seed = 7,
                                         uint64_t samples = 2000) {
  PENSTOCK_ASSIGN(const RecipeInfo* info, recipe_registry().find("imagenet"));
  PENSTOCK_ASSIGN(const Options options, Options::parse(info->options, settings, "setting"));
  return info->make({samples, seed}, options);
}

double percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  return values[size_t(percent / 100.0 * double(values.size() - 1))];
}

struct MadeSamples {
  std::vector<double> bytes;
  std::vector<JpegHeader> headers;
};
MadeSamples make_samples(const Recipe& recipe, uint64_t count) {
  MadeSamples made;
  const auto maker = recipe.maker().value();
  JpegDecoder decoder;
  for (uint64_t i = 0; i < count; ++i) {
    const std::vector<std::byte> jpeg = joined(maker->make(i).value().front());
    made.bytes.push_back(double(jpeg.size()));
    made.headers.push_back(decoder.read_header(jpeg).value());
  }
  return made;
}

#if defined(PENSTOCK_ADDRESS_SANITIZER) || defined(PENSTOCK_THREAD_SANITIZER)
constexpr uint64_t kManySamples = 512;  // with a sanitizer, a picture takes tens of milliseconds
#else
constexpr uint64_t kManySamples = 1000;
#endif

TEST(ImageNet, SizesFollowTheDistribution) {
  const auto recipe = imagenet({}).value();
  const MadeSamples made = make_samples(*recipe, kManySamples);
  const double z10 = 1.2815515655446004;
  EXPECT_NEAR(percentile(made.bytes, 50) / 112000.0, 1.0, 0.02);
  EXPECT_NEAR(percentile(made.bytes, 10) / (112000.0 * std::exp(-0.4 * z10)), 1.0, 0.05);
  EXPECT_NEAR(percentile(made.bytes, 90) / (112000.0 * std::exp(0.4 * z10)), 1.0, 0.05);

  // In most pictures the longer side has 500 pixels. Landscape and portrait occur, with several proportions.
  size_t usual_count = 0;
  size_t upright_count = 0;
  std::set<std::pair<uint32_t, uint32_t>> shapes;
  for (const JpegHeader& header : made.headers) {
    EXPECT_EQ(header.components, 3);
    if (std::max(header.width, header.height) == 500) ++usual_count;
    if (header.height > header.width) ++upright_count;
    shapes.emplace(header.width, header.height);
  }
  EXPECT_GT(usual_count, made.headers.size() / 3);
  EXPECT_GT(upright_count, made.headers.size() / 10);
  EXPECT_LT(upright_count, made.headers.size() / 2);
  EXPECT_GT(shapes.size(), 50U);
}

TEST(ImageNet, MedianAndSigmaAreMet) {
  struct Case {
    const char* median;
    double bytes;
    uint64_t count;
  };
  for (const Case& wanted : {Case{"12KB", 12000, 256}, Case{"30KiB", 30720, 64}, Case{"1MB", 1e6, 8}}) {
    const auto recipe = imagenet({{"median", wanted.median}, {"sigma", "0"}}).value();
    for (const double bytes : make_samples(*recipe, wanted.count).bytes)
      EXPECT_NEAR(bytes / wanted.bytes, 1.0, 0.12) << wanted.median;
  }
  const auto wide = imagenet({{"sigma", "1.0"}, {"median", "20KB"}}).value();
  const MadeSamples made = make_samples(*wide, 256);
  EXPECT_NEAR(std::log(percentile(made.bytes, 84.13) / percentile(made.bytes, 50)), 1.0, 0.1);
}

// Checks how much the sizes of the pictures differ from the sizes that were drawn, at the limits of the
// settings and in the usual range. docs/reference/recipes.md has the same numbers.
TEST(ImageNet, SizesAreThoseThatWereDrawn) {
  struct Case {
    std::vector<OptionWord> settings;
    uint64_t count;
    double rms;
    double beyond;  // fraction of samples that are more than 5% off
    double worst;
  };
  const auto size_settings = [](const char* median, const char* sigma) {
    return std::vector<OptionWord>{{"median", median}, {"sigma", sigma}};
  };
  const auto with_setting = [](std::vector<OptionWord> settings, const char* key, const char* value) {
    settings.push_back({key, value});
    return settings;
  };
  std::vector<Case> cases;
  for (const auto& [median, sigma] :
       {std::pair{"112KB", "0.4"}, {"12KB", "0.4"}, {"4kB", "0"}, {"4kB", "1.5"}, {"112KB", "1.5"}})
    cases.push_back({size_settings(median, sigma), kManySamples, 0.01, 0.003, 0.12});
  cases.push_back({size_settings("64MB", "0"), 2, 0.01, 0, 0.05});
  cases.push_back({size_settings("64MB", "1.5"), 3, 0.01, 0, 0.05});
  for (const auto& [median, sigma] :
       {std::pair{"112KB", "0.4"}, {"4kB", "0"}, {"4kB", "0.2"}, {"12KB", "0.67"}, {"112KB", "1.5"}})
    cases.push_back(
        {with_setting(size_settings(median, sigma), "encode", "full"), kManySamples / 8, 0.05, 0.1, 0.3});
  if (png_available().ok())
    for (const auto& [median, sigma] : {std::pair{"112KB", "0.4"}, {"4kB", "0"}, {"4kB", "1.5"}})
      cases.push_back(
          {with_setting(size_settings(median, sigma), "codec", "png"), kManySamples / 8, 0.04, 0.02, 0.5});
  for (const Case& wanted : cases) {
    std::string name;
    for (const OptionWord& word : wanted.settings) name += word.key + "=" + word.value + " ";
    const auto recipe = imagenet(wanted.settings).value();
    const auto maker = recipe->maker().value();
    std::vector<double> got;
    std::vector<double> drawn;
    double squares = 0;
    double beyond = 0;
    double worst = 0;
    for (uint64_t i = 0; i < wanted.count; ++i) {
      got.push_back(double(maker->make(i).value().front().bytes));
      drawn.push_back(double(recipe->bytes_expected(i)));
      const double off = std::abs(got.back() / drawn.back() - 1);
      squares += off * off;
      beyond += off > 0.05 ? 1 : 0;
      worst = std::max(worst, off);
    }
    const auto count = double(wanted.count);
    EXPECT_LT(std::sqrt(squares / count), wanted.rms) << name;
    EXPECT_LE(beyond / count, wanted.beyond) << name;
    EXPECT_LT(worst, wanted.worst) << name;
    for (const double percent : {10.0, 50.0, 90.0})
      EXPECT_NEAR(percentile(got, percent) / percentile(drawn, percent), 1.0, 0.05) << name << percent;
  }
}

TEST(ImageNet, AsPngOfTheSameSizes) {
  if (!png_available().ok()) GTEST_SKIP() << png_available().error().what;
  const auto recipe = imagenet({{"codec", "png"}, {"median", "40KB"}}).value();
  EXPECT_EQ(recipe->fields().front().codec, "png");
  EXPECT_EQ(recipe->fields().front().extension, ".png");
  const auto maker = recipe->maker().value();
  const auto again = recipe->maker().value();
  double got = 0, wanted = 0;
  for (uint64_t i = 0; i < 64; ++i) {
    const std::vector<std::byte> png = joined(maker->make(i).value().front());
    const auto expected = double(recipe->bytes_expected(i));
    EXPECT_NEAR(double(png.size()) / expected, 1.0, 0.15);
    got += double(png.size());
    wanted += expected;
    Image image;
    ASSERT_TRUE(decode_png(png, image).ok());
    if (i % 16 == 0) {
      EXPECT_TRUE(png == joined(again->make(i).value().front()));
    }
  }
  EXPECT_NEAR(got / wanted, 1.0, 0.02);
}

TEST(ImageNet, LabelsCycleThroughTheClasses) {
  const auto recipe = imagenet({{"classes", "3"}}).value();
  EXPECT_EQ(recipe->label_names(), (std::vector<std::string>{"n00000000", "n00000001", "n00000002"}));
  SamplePlan plan;
  recipe->plan(7, plan);
  EXPECT_EQ(plan.label, 1U);
  EXPECT_EQ(plan.key, "n00000001/n00000001_2");
}

TEST(ImageNet, SettingsOutOfRangeAreNamed) {
  const auto refused = [](const char* key, const char* value) {
    const auto recipe = imagenet({{key, value}});
    EXPECT_FALSE(recipe.ok()) << key << "=" << value;
    if (recipe.ok()) return;
    EXPECT_EQ(recipe.error().code, Errc::invalid_argument);
    EXPECT_NE(recipe.error().what.find(key), std::string::npos) << recipe.error().what;
  };
  refused("median", "1KB");
  refused("median", "1GB");
  refused("median", "-5");
  refused("sigma", "-0.1");
  refused("sigma", "2");
  refused("sigma", "nan");
  // With encode=full, some of these pictures would be larger than they should be. Pictures that are composed
  // of strips can be this small.
  const auto small = imagenet({{"encode", "full"}, {"median", "4kB"}, {"sigma", "0.4"}});
  ASSERT_FALSE(small.ok());
  EXPECT_NE(small.error().what.find("encode=full"), std::string::npos) << small.error().what;
  EXPECT_TRUE(imagenet({{"median", "4kB"}, {"sigma", "1.5"}}).ok());
  refused("classes", "0");
  refused("classes", "2000000");
  const auto misspelt = imagenet({{"medain", "1KB"}});
  EXPECT_NE(misspelt.error().what.find("'median'"), std::string::npos) << misspelt.error().what;
}

// Half the mean squared difference of two pixels of a row that are `distance` pixels apart, as a fraction of
// the picture's variance.
double variogram(const YccImage& picture, size_t distance) {
  double sum = 0, squares = 0, differences = 0;
  size_t pairs = 0;
  for (size_t y = 0; y < picture.height; ++y)
    for (size_t x = 0; x + distance < picture.width; ++x) {
      const double here = picture.planes[0][y * picture.stride() + x];
      const double there = picture.planes[0][y * picture.stride() + x + distance];
      sum += here;
      squares += here * here;
      differences += (here - there) * (here - there);
      ++pairs;
    }
  const double count = double(pairs);
  const double variance = squares / count - sum / count * sum / count;
  return differences / count / 2 / variance;
}

TEST(Picture, HasTheStatisticsOfPhotographs) {
  // For the distances 1, 4 and 32, the median variograms of 61 photographs are 0.03, 0.12
  // and 0.33. The variogram of white noise is 1.
  const Scenery scenery(7);
  PicturePainter painter(scenery);
  YccImage picture;
  std::array<std::vector<double>, 3> variograms;
  for (uint64_t i = 0; i < 30; ++i) {
    painter.paint(RandomStream(7, "test").substream(i), 500, 375, picture);
    variograms[0].push_back(variogram(picture, 1));
    variograms[1].push_back(variogram(picture, 4));
    variograms[2].push_back(variogram(picture, 32));
  }
  EXPECT_GT(percentile(variograms[0], 50), 0.01);
  EXPECT_LT(percentile(variograms[0], 50), 0.08);
  EXPECT_LT(percentile(variograms[1], 50), 0.30);
  EXPECT_GT(percentile(variograms[2], 50), 0.25);
  EXPECT_LT(percentile(variograms[2], 50), 0.75);
}

TEST(Picture, SamePixelsOnEveryMachine) {
  // Compares FNV-1a hashes of the visible part of three pictures. recipe.hpp promises the same bytes on every
  // machine and with every compiler.
  const Scenery scenery(7);
  PicturePainter painter(scenery);
  YccImage picture;
  std::vector<uint64_t> hashes;
  for (const auto& [width, height] : {std::pair{500U, 375U}, {33U, 47U}, {1200U, 1100U}}) {
    painter.paint(RandomStream(7, "golden").substream(width), width, height, picture);
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t plane = 0; plane < 3; ++plane) {
      const size_t subsampling = plane == 0 ? 1 : 2;
      for (size_t y = 0; y < height / subsampling; ++y)
        for (size_t x = 0; x < width / subsampling; ++x)
          hash = (hash ^ picture.planes[plane][y * (picture.stride() / subsampling) + x]) * 0x100000001b3U;
    }
    hashes.push_back(hash);
  }
  EXPECT_EQ(hashes,
            (std::vector<uint64_t>{1500957756884927051U, 1683155645734160086U, 14032324429806897972U}));
}

TEST(Picture, CoversEveryPixelOfAnyShape) {
  const Scenery scenery(1);
  PicturePainter painter(scenery);
  for (const auto& [width, height] : {std::pair{16U, 16U}, {17U, 4000U}, {4000U, 17U}, {1025U, 1023U}}) {
    YccImage picture;
    picture.reshape(width, height);
    YccImage again = picture;
    for (size_t plane = 0; plane < 3; ++plane) {
      std::fill(picture.planes[plane].begin(), picture.planes[plane].end(), uint8_t{0});
      std::fill(again.planes[plane].begin(), again.planes[plane].end(), uint8_t{255});
    }
    painter.paint(RandomStream(3, "shape"), width, height, picture);
    painter.paint(RandomStream(3, "shape"), width, height, again);
    EXPECT_EQ(picture.planes, again.planes) << width << "x" << height;
  }
}

}  // namespace
}  // namespace penstock
