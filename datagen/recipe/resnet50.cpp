// Recipe: the samples of MLPerf Storage's ResNet50 workload, as pictures (docs/reference/recipes.md).
#include <fmt/format.h>

#include <iterator>
#include <memory>

#include "datagen/recipe/photo_recipe.hpp"
#include "datagen/recipe/recipe.hpp"

namespace penstock {

extern const RecipeInfo recipe_resnet50;

namespace {

constexpr uint64_t kResnet50Samples = uint64_t{1024} * 1251;
constexpr uint64_t kResnet50Classes = 1000;

constexpr OptionSpec kResnet50Options[] = {
    // The record length in DLIO's workload file. All samples have the same size there.
    photo_median_option("114660B"),
    photo_sigma_option("0"),
    kEncodeOption,
};
constexpr RecipeSetting kResnet50FormatSettings[] = {{"samples_per_file", "1251"}, {"features", "dlio"}};

void name_resnet50_sample(uint64_t index, SamplePlan& out) {
  const uint64_t label = index % kResnet50Classes;
  fmt::format_to(std::back_inserter(out.key), "class_{:03}/resnet50_{:07}", label, index);
  out.label = uint32_t(label);
}

Result<std::unique_ptr<Recipe>> make_resnet50(const RecipeRequest& request, const Options& options) {
  PENSTOCK_ASSIGN(PhotoRecipeSpec spec, photo_recipe_spec("resnet50", kResnet50Samples, request, options));
  spec.image.extension = ".jpeg";  // the extension that DLIO lists
  spec.name = name_resnet50_sample;
  spec.label_names = [] { return numbered_names("class_", 3, kResnet50Classes); };
  return std::make_unique<PhotoRecipe>(std::move(spec));
}

}  // namespace

const RecipeInfo recipe_resnet50{
    .name = "resnet50",
    .summary = "JPEG images of one size, like MLPerf Storage's ResNet50 (whose records are noise)",
    .options = kResnet50Options,
    .source = "the ResNet50 workload of MLPerf Storage and DLIO",
    .full_samples = kResnet50Samples,
    .sizes = "114,660 bytes, within a few percent",
    .format = "tfrecord",
    .format_settings = [](const Options&) { return std::span<const RecipeSetting>(kResnet50FormatSettings); },
    .mean_sample_bytes = 114660,
    .fingerprint = 0xcc6d5de7,
    .make = make_resnet50,
};

}  // namespace penstock
