// Recipe: the samples of MLPerf Storage's CosmoFlow workload (docs/reference/recipes.md).
#include <fmt/format.h>

#include <iterator>
#include <memory>

#include "datagen/manifest/manifest.hpp"
#include "datagen/recipe/array_recipe.hpp"
#include "datagen/recipe/recipe.hpp"
#include "datagen/recipe/sizes.hpp"

namespace penstock {

extern const RecipeInfo recipe_cosmoflow;

namespace {

constexpr uint64_t kCosmoflowSamples = 524'288;
constexpr NormalSizes kCosmoflowSizes{2'828'486, 71'311};  // mean and deviation, from DLIO's workload file

constexpr OptionSpec kCosmoflowOptions[] = {mean_option("2828486"), kDeviationOption};
constexpr RecipeSetting kCosmoflowFormatSettings[] = {{"samples_per_file", "1"}, {"features", "dlio"}};
constexpr RecipeSetting kCosmoflowSmallSettings[] = {{"mean", "20000"}};

void name_cosmoflow_sample(uint64_t index, SamplePlan& out) {
  fmt::format_to(std::back_inserter(out.key), "cosmoflow_{:06}", index);
  out.label = kNoLabel;
}

Result<std::unique_ptr<Recipe>> make_cosmoflow(const RecipeRequest& request, const Options& options) {
  PENSTOCK_ASSIGN(const NormalSizes sizes, normal_sizes(options, kCosmoflowSizes));
  return std::make_unique<ArrayRecipe>(
      request, ArrayRecipeSpec{
                   .recipe = "cosmoflow",
                   .full_samples = kCosmoflowSamples,
                   .parts = {{.field = {.name = "image", .codec = "raw", .extension = ".bin", .varies = true},
                              .noise = Noise::bytes}},
                   .sizes = sizes,
                   .name = name_cosmoflow_sample});
}

}  // namespace

const RecipeInfo recipe_cosmoflow{
    .name = "cosmoflow",
    .summary = "byte arrays with the sizes of MLPerf Storage's CosmoFlow",
    .options = kCosmoflowOptions,
    .source = "the CosmoFlow workload of MLPerf Storage and DLIO",
    .full_samples = kCosmoflowSamples,
    .sizes = "normal, mean 2,828,486 bytes, deviation 71,311",
    .format = "tfrecord",
    .format_settings =
        [](const Options&) { return std::span<const RecipeSetting>(kCosmoflowFormatSettings); },
    .small_settings = kCosmoflowSmallSettings,
    .mean_sample_bytes = kCosmoflowSizes.mean,
    .fingerprint = 0xb14e843e,
    .make = make_cosmoflow,
};

}  // namespace penstock
