// Recipes of pictures. They differ in the number, sizes, names and encoding of their pictures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/recipe/photo_sizes.hpp"
#include "datagen/recipe/recipe.hpp"
#include "datagen/recipe/scenery.hpp"
#include "datagen/recipe/strip_stock.hpp"

namespace penstock {

struct PhotoRecipeSpec {
  // Name of the recipe. It selects the random numbers, so two recipes have different pictures.
  std::string_view recipe;
  Field image{.name = "image", .codec = "jpeg", .extension = ".jpg", .varies = true};
  uint64_t samples = 0;
  uint64_t seed = 0;
  unsigned threads = 0;  // like RecipeRequest::threads
  PhotoSizes sizes;
  // True if JPEG pictures are joined from encoded strips (PhotoComposer). False if each picture is painted
  // and encoded on its own. It does not matter for PNG or if `maker` is set: then each picture is made on its
  // own.
  bool is_composed = true;
  SampleNamer name{};
  // Makes a maker of pictures that are not photographs. If it is nullptr, the recipe uses a maker of
  // photographs for the codec: "jpeg", or "png" (if png_available()).
  std::unique_ptr<SampleMaker> (*maker)(const Scenery& scenery, RandomStream samples) = nullptr;
  // Returns the names of the labels. It is a function, because there may be a million names, and most callers
  // do not need them.
  std::function<std::vector<std::string>()> label_names{};
};

// A row for a recipe's option table.
inline constexpr OptionSpec kEncodeOption{
    .name = "encode",
    .role = OptionRole::work,
    .type = OptionType::choice,
    .value = "composed|full",
    .fallback = "composed",
    .help = "composed: assemble images from encoded strips; full: draw and encode each (40 times the work)"};

// Makes the specification of a recipe of JPEG pictures from the request and the options. The caller adds the
// names. `options` must contain kEncodeOption and the options of photo_sizes().
Result<PhotoRecipeSpec> photo_recipe_spec(std::string_view recipe, uint64_t full_samples,
                                          const RecipeRequest& request, const Options& options);

// Names such as "class_000", "class_001": the prefix and a number with at least `digits` digits.
std::vector<std::string> numbered_names(std::string_view prefix, int digits, uint64_t count);

// A recipe whose samples have one field, the picture.
class PhotoRecipe final : public Recipe {
 public:
  explicit PhotoRecipe(PhotoRecipeSpec spec);

  uint64_t samples() const override { return spec_.samples; }
  void plan(uint64_t index, SamplePlan& out) const override;
  uint64_t bytes_expected(uint64_t index) const override;
  std::vector<std::string> label_names() const override { return spec_.label_names(); }
  std::span<const Field> fields() const override { return {&spec_.image, 1}; }
  Result<std::unique_ptr<SampleMaker>> maker() const override;

 private:
  const PhotoRecipeSpec spec_;
  const RandomStream stream_;
  mutable std::once_flag scenery_once_;
  mutable std::optional<Scenery> scenery_;   // made for the first maker; plan() does not need it
  mutable std::optional<StripStock> stock_;  // set only if pictures are composed
};

}  // namespace penstock
