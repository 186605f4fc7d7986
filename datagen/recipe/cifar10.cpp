// Recipe: 32x32 pictures with the colour planes, classes and number of samples of CIFAR-10 (docs/reference/recipes.md).
#include <fmt/format.h>

#include <array>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "datagen/recipe/photo_recipe.hpp"
#include "datagen/recipe/picture.hpp"
#include "datagen/recipe/recipe.hpp"
#include "datagen/recipe/scenery.hpp"

namespace penstock {

extern const RecipeInfo recipe_cifar10;

namespace {

constexpr uint64_t kCifar10Samples = 60'000;  // 50,000 for training, then 10,000 for testing
constexpr uint32_t kSidePixels = 32;
constexpr size_t kPlanePixels = size_t{kSidePixels} * kSidePixels;
constexpr std::array<std::string_view, 10> kCifar10Classes{
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};

// Makes the red, green and blue planes of a picture. Paints the picture larger, with four times as many
// pixels on each side, and shrinks it. So the 32 x 32 pixels show a whole scene, as in a photograph, and not
// a detail.
class CifarMaker final : public SampleMaker {
 public:
  CifarMaker(const Scenery& scenery, RandomStream samples) : samples_(samples), painter_(scenery) {}

  Result<std::span<const FieldBytes>> make(uint64_t index) override {
    painter_.paint(samples_.substream(index), kSidePixels * kShrinkFactor, kSidePixels * kShrinkFactor,
                   picture_);
    for (size_t y = 0; y < kSidePixels; ++y)
      for (size_t x = 0; x < kSidePixels; ++x) put_pixel(x, y);
    piece_ = std::as_bytes(std::span(planes_));
    field_ = {.pieces = {&piece_, 1}, .bytes = piece_.size()};
    return std::span<const FieldBytes>(&field_, 1);
  }

 private:
  static constexpr size_t kShrinkFactor = 4;

  // The mean of a square block of a plane. The block has `side` pixels on each side, and is number x from the
  // left and y from the top.
  int block_mean(size_t plane, size_t x, size_t y, size_t side) const {
    const size_t stride = plane == 0 ? picture_.stride() : picture_.stride() / 2;
    int sum = 0;
    for (size_t row = 0; row < side; ++row)
      for (size_t column = 0; column < side; ++column)
        sum += picture_.planes[plane][(y * side + row) * stride + x * side + column];
    return sum / int(side * side);
  }

  void put_pixel(size_t x, size_t y) {
    const auto pixel = jfif_rgb(block_mean(0, x, y, kShrinkFactor), block_mean(1, x, y, kShrinkFactor / 2),
                                block_mean(2, x, y, kShrinkFactor / 2));
    for (size_t plane = 0; plane < pixel.size(); ++plane)
      planes_[plane * kPlanePixels + y * kSidePixels + x] = pixel[plane];
  }

  const RandomStream samples_;
  PicturePainter painter_;
  YccImage picture_;
  std::array<uint8_t, 3 * kPlanePixels> planes_{};
  std::span<const std::byte> piece_;
  FieldBytes field_;
};

std::unique_ptr<SampleMaker> make_cifar_maker(const Scenery& scenery, RandomStream samples) {
  return std::make_unique<CifarMaker>(scenery, samples);
}

void name_cifar10_sample(uint64_t index, SamplePlan& out) {
  const uint64_t label = index % kCifar10Classes.size();
  fmt::format_to(std::back_inserter(out.key), "{0}/{0}_{1:05}", kCifar10Classes[label], index);
  out.label = uint32_t(label);
}

Result<std::unique_ptr<Recipe>> make_cifar10(const RecipeRequest& request, const Options& /*options*/) {
  return std::make_unique<PhotoRecipe>(PhotoRecipeSpec{
      .recipe = "cifar10",
      .image = {.name = "image", .codec = "raw", .extension = ".bin", .shape = {3, kSidePixels, kSidePixels}},
      .samples = request.samples == 0 ? kCifar10Samples : request.samples,
      .seed = request.seed,
      .threads = request.threads,
      .sizes = {3 * kPlanePixels, 0},
      .is_composed = false,
      .name = name_cifar10_sample,
      .maker = make_cifar_maker,
      .label_names = [] {
        return std::vector<std::string>(kCifar10Classes.begin(), kCifar10Classes.end());
      }});
}

}  // namespace

const RecipeInfo recipe_cifar10{
    .name = "cifar10",
    .summary = "32x32 images in ten classes, 50,000 for training and 10,000 for testing",
    .source = "CIFAR-10 (Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009)",
    .full_samples = kCifar10Samples,
    .sizes = "3,072 bytes each",
    .format = "cifar",
    .mean_sample_bytes = 3 * kPlanePixels,
    .fingerprint = 0x847eb326,
    .make = make_cifar10,
};

}  // namespace penstock
