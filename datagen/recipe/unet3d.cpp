// Recipe: the samples of MLPerf Storage's UNet3D workload (docs/reference/recipes.md).
#include <fmt/format.h>

#include <iterator>
#include <memory>

#include "datagen/recipe/array_recipe.hpp"
#include "datagen/recipe/recipe.hpp"
#include "datagen/recipe/sizes.hpp"

namespace penstock {

extern const RecipeInfo recipe_unet3d;

namespace {

constexpr uint64_t kUnet3dSamples = 168;
constexpr NormalSizes kUnet3dSizes{146'600'628, 68'341'808};  // mean and deviation, from DLIO's workload file

constexpr OptionSpec kUnet3dOptions[] = {mean_option("146600628"), kDeviationOption};
constexpr RecipeSetting kUnet3dFormatSettings[] = {{"samples_per_file", "1"}};
constexpr RecipeSetting kUnet3dSmallSettings[] = {{"mean", "20000"}};

void name_unet3d_sample(uint64_t index, SamplePlan& out) {
  fmt::format_to(std::back_inserter(out.key), "unet3d_{:05}", index);
  out.label = 0;
}

// Makes the recipe. Its samples have two arrays, in DLIO's layout. The array x contains bytes. Its last
// dimension counts the samples, as in DLIO's files; here its length is 1. The array y contains one label,
// which is always 0.
Result<std::unique_ptr<Recipe>> make_unet3d(const RecipeRequest& request, const Options& options) {
  PENSTOCK_ASSIGN(const NormalSizes sizes, normal_sizes(options, kUnet3dSizes));
  const Field x{.name = "x", .codec = "raw", .extension = ".npy", .varies = true, .trailing_ones = 2};
  const Field y{.name = "y", .codec = "raw", .extension = ".npy", .element = Element::i64, .shape = {1}};
  return std::make_unique<ArrayRecipe>(
      request, ArrayRecipeSpec{.recipe = "unet3d",
                               .full_samples = kUnet3dSamples,
                               .parts = {{.field = x, .noise = Noise::bytes}, {.field = y}},
                               .sizes = sizes,
                               .name = name_unet3d_sample});
}

}  // namespace

const RecipeInfo recipe_unet3d{
    .name = "unet3d",
    .summary = "byte arrays of very different sizes, like MLPerf Storage's UNet3D",
    .options = kUnet3dOptions,
    .source = "the UNet3D workload of MLPerf Storage and DLIO",
    .full_samples = kUnet3dSamples,
    .sizes = "normal, mean 146,600,628 bytes, deviation 68,341,808",
    .format = "npz",
    .format_settings = [](const Options&) { return std::span<const RecipeSetting>(kUnet3dFormatSettings); },
    .small_settings = kUnet3dSmallSettings,
    .mean_sample_bytes = kUnet3dSizes.mean,
    .fingerprint = 0x6d6589dd,
    .make = make_unet3d,
};

}  // namespace penstock
