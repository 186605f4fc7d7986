// Recipe: detector images with the nine data sets of HEPCNNB's files (docs/reference/recipes.md).
#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <vector>

#include "datagen/recipe/array_recipe.hpp"
#include "datagen/recipe/recipe.hpp"

namespace penstock {

extern const RecipeInfo recipe_hepcnn;

namespace {

constexpr uint64_t kFiles = 1024;
constexpr uint64_t kTrainingSamples = 709;   // per file
constexpr uint64_t kValidationSamples = 94;  // per file

constexpr OptionSpec kHepcnnOptions[] = {
    {.name = "split",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "train|validation",
     .fallback = "train",
     .help = "train: 1024 files of 709 samples; validation: 1024 of 94"},
    shape_option("3,224,224", "channels, height and width of an image"),
};
constexpr RecipeSetting kTrainingSettings[] = {{"samples_per_file", "709"}};
constexpr RecipeSetting kValidationSettings[] = {{"samples_per_file", "94"}};
constexpr RecipeSetting kHepcnnSmallSettings[] = {{"shape", "3,32,32"}};

bool is_validation(const Options& options) {
  return options.text("split") == "validation";
}

Field scalar_field(std::string_view name, Element element) {
  return {.name = name, .codec = "raw", .extension = ".h5", .element = element};
}

// The parts of a sample. The original program, HEPCNNB, reads the first five of them. It does not read the
// other four, whose names are Penstock's own.
enum Part : size_t { kData, kLabel, kNormWeight, kWeight, kPsr, kMet, kNJets, kHt, kEvent };
std::vector<ArrayPart> hepcnn_parts(const std::vector<uint64_t>& shape) {
  return {
      {.field = {.name = "data", .codec = "raw", .extension = ".h5", .element = Element::f32, .shape = shape},
       .noise = Noise::floats},
      {.field = scalar_field("label", Element::i32)},
      {.field = scalar_field("normweight", Element::f32)},
      {.field = scalar_field("weight", Element::f32)},
      {.field = scalar_field("psr", Element::f32)},
      {.field = scalar_field("met", Element::f32)},
      {.field = scalar_field("njets", Element::i32)},
      {.field = scalar_field("ht", Element::f32)},
      {.field = scalar_field("event", Element::i64)}};
}

uint32_t label_of(const RandomStream& sample) {
  return uint32_t(sample.bits(0) & 1U);
}

void fill_number(const RandomStream& sample, uint64_t index, size_t part, std::span<std::byte> out) {
  const double drawn = sample.uniform(part);
  switch (part) {
    case kLabel:
      return put_element(int32_t(label_of(sample)), out);
    case kNJets:
      return put_element(int32_t(3 + drawn * 10), out);
    case kEvent:
      return put_element(int64_t(index), out);
    case kMet:
    case kHt:
      return put_element(float(2000 * drawn), out);
    case kPsr:
      return put_element(drawn < 0.5 ? 0.0F : 1.0F, out);
    default:
      return put_element(float(drawn), out);
  }
}

Result<std::unique_ptr<Recipe>> make_hepcnn(const RecipeRequest& request, const Options& options) {
  const std::vector<uint64_t>& shape = options.list("shape");
  PENSTOCK_TRY(check_shape(shape, 3));
  const bool for_validation = is_validation(options);
  const std::string_view recipe = for_validation ? "hepcnn validation" : "hepcnn";
  const auto name = [for_validation, stream = RandomStream(request.seed, recipe)](uint64_t index,
                                                                                  SamplePlan& out) {
    fmt::format_to(std::back_inserter(out.key), "{}_{:06}", for_validation ? "val" : "train", index);
    out.label = label_of(stream.substream(index));
  };
  return std::make_unique<ArrayRecipe>(
      request,
      ArrayRecipeSpec{.recipe = recipe,
                      .full_samples = kFiles * (for_validation ? kValidationSamples : kTrainingSamples),
                      .parts = hepcnn_parts(shape),
                      .name = name,
                      .fill = fill_number,
                      .label_names = {"background", "signal"}});
}

std::span<const RecipeSetting> file_settings_of(const Options& options) {
  return is_validation(options) ? std::span(kValidationSettings) : std::span(kTrainingSettings);
}

}  // namespace

const RecipeInfo recipe_hepcnn{
    .name = "hepcnn",
    .summary = "detector images with labels and weights, 709 per file",
    .options = kHepcnnOptions,
    .source = "HEPCNNB, as in Chowdhury et al.'s study of deep-learning I/O at NERSC",
    .full_samples = kFiles * kTrainingSamples,
    .sizes = "602,148 bytes each",
    .format = "hdf5",
    .format_settings = file_settings_of,
    .small_settings = kHepcnnSmallSettings,
    .mean_sample_bytes = 4.0 * 3 * 224 * 224 + 36,
    .fingerprint = 0xef7a7d31,
    .make = make_hepcnn,
};

}  // namespace penstock
