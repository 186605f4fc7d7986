// Recipe: simulated weather with the HDF5 data sets and shapes of ClimDeepLearn's input (docs/reference/recipes.md).
#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "datagen/recipe/array_recipe.hpp"
#include "datagen/recipe/recipe.hpp"

namespace penstock {

extern const RecipeInfo recipe_climate;

namespace {

constexpr uint64_t kClimateSamples = 62738;
constexpr size_t kDataPart = 0;

constexpr OptionSpec kClimateOptions[] = {
    shape_option("16,768,1152", "channels, height and width of a sample")};
constexpr RecipeSetting kClimateFormatSettings[] = {{"samples_per_file", "1"}};
constexpr RecipeSetting kClimateSmallSettings[] = {{"shape", "16,16,24"}};

std::vector<ArrayPart> climate_parts(const std::vector<uint64_t>& shape) {
  const auto field = [](std::string_view name, std::vector<uint64_t> sides, bool one_chunk) {
    return Field{.name = name,
                 .codec = "raw",
                 .extension = ".h5",
                 .element = Element::f32,
                 .shape = std::move(sides),
                 .one_chunk = one_chunk};
  };
  return {{.field = field("climate/data", shape, true), .noise = Noise::floats},
          {.field = field("climate/labels", {shape[1], shape[2]}, true), .noise = Noise::classes},
          {.field = field("climate/stats", {shape[0], kMoments}, false), .moments_of = kDataPart}};
}

void name_climate_sample(uint64_t index, SamplePlan& out) {
  fmt::format_to(std::back_inserter(out.key), "data-{:05}", index);
  out.label = kNoLabel;
}

Result<std::unique_ptr<Recipe>> make_climate(const RecipeRequest& request, const Options& options) {
  const std::vector<uint64_t>& shape = options.list("shape");
  PENSTOCK_TRY(check_shape(shape, 3));
  return std::make_unique<ArrayRecipe>(request, ArrayRecipeSpec{.recipe = "climate",
                                                                .full_samples = kClimateSamples,
                                                                .parts = climate_parts(shape),
                                                                .name = name_climate_sample});
}

}  // namespace

const RecipeInfo recipe_climate{
    .name = "climate",
    .summary = "16 weather fields on a globe with a segmentation map, one time step per file",
    .options = kClimateOptions,
    .source = "the input of ClimDeepLearn, as in Chowdhury et al.'s study of deep-learning I/O at NERSC",
    .full_samples = kClimateSamples,
    .sizes = "60,162,304 bytes each",
    .format = "hdf5",
    .format_settings = [](const Options&) { return std::span<const RecipeSetting>(kClimateFormatSettings); },
    .small_settings = kClimateSmallSettings,
    .mean_sample_bytes = 4.0 * (16 * 768 * 1152 + 768 * 1152 + 16 * 4),
    .fingerprint = 0xacf74136,
    .make = make_climate,
};

}  // namespace penstock
