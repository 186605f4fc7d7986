#include "datagen/recipe/photo_recipe.hpp"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "datagen/recipe/photo_composer.hpp"
#include "datagen/recipe/photo_maker.hpp"

namespace penstock {

PhotoRecipe::PhotoRecipe(PhotoRecipeSpec spec) : spec_(std::move(spec)), stream_(spec_.seed, spec_.recipe) {}

namespace {

// Pictures that are encoded one by one have about 2500 bytes or more, even with the coarsest quantizer. Fails
// if more than one picture in a hundred of a data set with these `sizes` would have to be smaller.
Result<void> check_full_sizes(const PhotoSizes& sizes) {
  constexpr double kMinBytes = 2500;
  constexpr double kSmallestQuantile = 0.01;
  if (sizes.median_bytes * portable_exp(sizes.sigma_of_log * inverse_normal(kSmallestQuantile)) >= kMinBytes)
    return success();
  return make_error(
      Errc::invalid_argument,
      "encode=full with median={:.0f} and sigma={}: over 1% of the images should be smaller than {:.0f} "
      "bytes, the smallest possible size: raise the median, lower sigma, or leave out encode=full",
      sizes.median_bytes, sizes.sigma_of_log, kMinBytes);
}

}  // namespace

Result<PhotoRecipeSpec> photo_recipe_spec(std::string_view recipe, uint64_t full_samples,
                                          const RecipeRequest& request, const Options& options) {
  PENSTOCK_ASSIGN(const PhotoSizes sizes, photo_sizes(options));
  const bool is_composed = options.text("encode") == "composed";
  PENSTOCK_TRY(is_composed ? success() : check_full_sizes(sizes));
  return PhotoRecipeSpec{.recipe = recipe,
                         .samples = request.samples == 0 ? full_samples : request.samples,
                         .seed = request.seed,
                         .threads = request.threads,
                         .sizes = sizes,
                         .is_composed = is_composed};
}

std::vector<std::string> numbered_names(std::string_view prefix, int digits, uint64_t count) {
  std::vector<std::string> names;
  names.reserve(count);
  for (uint64_t i = 0; i < count; ++i) names.push_back(fmt::format("{}{:0{}}", prefix, i, digits));
  return names;
}

void PhotoRecipe::plan(uint64_t index, SamplePlan& out) const {
  out.key.clear();
  spec_.name(index, out);
}

uint64_t PhotoRecipe::bytes_expected(uint64_t index) const {
  if (!spec_.image.varies) return field_bytes(spec_.image);
  return uint64_t(photo_bytes(spec_.sizes, stream_, index));
}

// Makes a maker for the calling thread. Any thread may call this function. If memory runs out
// (std::bad_alloc), the error is `exhausted`.
Result<std::unique_ptr<SampleMaker>> PhotoRecipe::maker() const {
  try {
    // The first thread makes the scenery, and the others wait for it here. If making it throws, the next
    // thread tries again.
    std::call_once(scenery_once_, [this] {
      scenery_.emplace(spec_.seed, spec_.threads);
      if (spec_.is_composed) stock_.emplace(*scenery_, RandomStream(spec_.seed, "strips"));
    });
    if (spec_.maker != nullptr) return spec_.maker(*scenery_, stream_);
    if (spec_.image.codec == "png") return std::make_unique<PngPhotoMaker>(*scenery_, stream_, spec_.sizes);
    if (stock_)
      return std::make_unique<PhotoComposer>(*stock_, stream_, spec_.sizes,
                                             fmt::format("{}, seed {}", spec_.recipe, spec_.seed));
    return std::make_unique<PhotoMaker>(*scenery_, stream_, spec_.sizes);
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory for the canvases of recipe '{}' (about 20 MiB)",
                      spec_.recipe);
  }
}

}  // namespace penstock
