// Recipe: JPEG or PNG pictures in class folders with the sizes of ImageNet. docs/reference/recipes.md gives the source
// of the figures, and says how the pictures resemble photographs.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <iterator>
#include <memory>

#include "datagen/codec/png.hpp"
#include "datagen/recipe/photo_recipe.hpp"
#include "datagen/recipe/recipe.hpp"

namespace penstock {

extern const RecipeInfo recipe_imagenet;

namespace {

constexpr uint64_t kImagenetSamples = 1281167;  // from the ILSVRC 2012 training set

constexpr OptionSpec kImagenetOptions[] = {
    photo_median_option("112KB"),  // the median in the paper of Chien et al. 2018, for its micro-benchmark
    photo_sigma_option("0.4"),
    kEncodeOption,
    {.name = "classes",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1000",
     .help = "classes, one folder each",
     .at_least = 1},
    {.name = "codec",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "jpeg|png",
     .fallback = "jpeg",
     .help = "png: images with fewer pixels, so that the sizes are the same"},
};

Result<std::unique_ptr<Recipe>> make_imagenet(const RecipeRequest& request, const Options& options) {
  PENSTOCK_ASSIGN(PhotoRecipeSpec spec, photo_recipe_spec("imagenet", kImagenetSamples, request, options));
  const auto classes = uint64_t(options.integer("classes"));
  if (classes > 1'000'000) return make_error(Errc::invalid_argument, "classes={}: at most 1000000", classes);
  spec.image.extension = ".JPEG";
  if (options.text("codec") == "png") {
    PENSTOCK_TRY(png_available());
    spec.image.extension = ".png";
    spec.image.codec = "png";
  }
  spec.name = [classes](uint64_t index, SamplePlan& out) {
    const uint64_t label = index % classes;
    fmt::format_to(std::back_inserter(out.key), FMT_COMPILE("n{0:08}/n{0:08}_{1}"), label, index / classes);
    out.label = uint32_t(label);
  };
  spec.label_names = [classes] { return numbered_names("n", 8, classes); };
  return std::make_unique<PhotoRecipe>(std::move(spec));
}

}  // namespace

const RecipeInfo recipe_imagenet{
    .name = "imagenet",
    .summary = "photo-like synthetic JPEGs in 1000 class folders",
    .options = kImagenetOptions,
    .source =
        "ILSVRC 2012 as in Chien et al., Characterizing Deep-Learning I/O Workloads in TensorFlow (2018)",
    .full_samples = kImagenetSamples,
    .sizes = "log-normal, median 112 KB, sigma 0.40",
    .format = "files",
    .mean_sample_bytes = 121328,  // 112 KB * exp(0.40^2 / 2): the mean of a log-normal distribution
    .fingerprint = 0x6e371641,
    .make = make_imagenet,
};

}  // namespace penstock
