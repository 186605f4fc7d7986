// What recipes of photographs have in common: everything but how many there are, of what sizes, and what they
// are called.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "datagen/recipe/photo_sizes.hpp"
#include "datagen/recipe/recipe.hpp"
#include "datagen/recipe/scenery.hpp"
#include "datagen/recipe/strip_stock.hpp"

namespace penstock {

struct PhotoSet {
  std::string_view recipe;  // its name, which its pictures are drawn by: two recipes have two sets of them
  std::string_view extension = ".jpg";
  std::string_view codec = "jpeg";  // or "png", where png_available()
  std::uint64_t samples = 0;
  std::uint64_t seed = 0;
  unsigned threads = 0;  // as RecipeRequest::threads
  PhotoSizes sizes;
  bool composed = true;  // of encoded strips; else each picture is painted and encoded by itself
};

// Rows for a recipe's option table, and what was said.
inline constexpr OptionSpec kEncodeOption{
    .name = "encode",
    .role = OptionRole::work,
    .type = OptionType::choice,
    .value = "composed|full",
    .fallback = "composed",
    .help = "put pictures together from encoded strips, or paint and encode each (40 times the work)"};

// JPEG pictures as the request and the options (the rows above and photo_sizes()) want them.
Result<PhotoSet> photo_set(std::string_view recipe, std::uint64_t full_samples, const RecipeRequest& request,
                           const Options& options);

// One field, "image". Subclasses say names and classes.
class PhotoRecipe : public Recipe {
 public:
  std::uint64_t samples() const final { return set_.samples; }
  void plan(std::uint64_t index, SamplePlan& out) const final;
  std::uint64_t bytes_expected(std::uint64_t index) const final;
  std::span<const Field> fields() const final { return {&image_, 1}; }
  Result<std::unique_ptr<SampleMaker>> maker() const final;

 protected:
  explicit PhotoRecipe(const PhotoSet& set);
  virtual void name(std::uint64_t index, SamplePlan& out) const = 0;  // key (empty before) and label

 private:
  const PhotoSet set_;
  const Field image_;
  const RandomStream stream_;
  mutable std::once_flag scenery_once_;
  mutable std::optional<Scenery> scenery_;   // made when the first maker needs it: plans go without
  mutable std::optional<StripStock> stock_;  // where pictures are composed
};

}  // namespace penstock
