// Recipes of arrays. Large fields are gathered from a stock of noise; the recipe fills small ones itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/recipe/noise_stock.hpp"
#include "datagen/recipe/recipe.hpp"
#include "datagen/recipe/sizes.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {

struct ArrayPart {
  Field field;
  std::optional<Noise> noise{};
  // Index of an earlier part whose moments this part contains, one set per channel (put_moments()). A channel
  // is an index of that part's first dimension, and its noise is `floats`. The data set then also has a
  // companion with the moments of the whole stock. Without `noise` and this, ArrayRecipeSpec::fill makes the
  // bytes.
  std::optional<std::size_t> moments_of{};
};

struct ArrayRecipeSpec {
  std::string_view recipe;  // its name, which selects its random numbers
  std::uint64_t full_samples = 0;
  std::vector<ArrayPart> parts;  // at most one has a variable size
  NormalSizes sizes{};           // of the part with a variable size
  SampleNamer name;
  // Fills a part without noise; `out` is zero before. `sample` is the random stream of the sample. Any
  // thread.
  void (*fill)(const RandomStream& sample, std::uint64_t index, std::size_t part,
               std::span<std::byte> out) = nullptr;
  std::vector<std::string> label_names{};
};

class ArrayRecipe final : public Recipe {
 public:
  ArrayRecipe(const RecipeRequest& request, ArrayRecipeSpec spec);

  std::uint64_t samples() const override { return samples_; }
  void plan(std::uint64_t index, SamplePlan& out) const override;
  std::uint64_t bytes_expected(std::uint64_t index) const override;
  std::vector<std::string> label_names() const override { return spec_.label_names; }
  std::span<const Field> fields() const override { return fields_; }
  Result<std::unique_ptr<SampleMaker>> maker() const override;
  std::vector<Companion> companions() const override;

 private:
  class Maker;
  const NoiseStock& stock(Noise noise) const;  // made at the first call; any thread
  void fill_moments(std::size_t part, const NoiseArray& array, std::span<std::byte> out) const;
  std::uint64_t bytes_of(std::size_t part, std::uint64_t index) const {
    return fields_[part].varies ? normal_bytes(spec_.sizes, stream_, index) : field_bytes(fields_[part]);
  }

  const ArrayRecipeSpec spec_;
  const std::uint64_t samples_;
  const std::uint64_t seed_;
  const unsigned threads_;
  const RandomStream stream_;
  std::vector<Field> fields_;  // of the parts
  mutable std::mutex stocks_mutex_;
  // Each is made when a maker first needs it.
  mutable std::array<std::unique_ptr<const NoiseStock>, 3> stocks_;
};

constexpr OptionSpec shape_option(std::string_view fallback, std::string_view help) {
  return {.name = "shape",
          .role = OptionRole::work,
          .type = OptionType::list,
          .value = "C,H,W",
          .fallback = fallback,
          .help = help,
          .at_least = 1};
}
// For a setting "shape": `invalid_argument` unless it has `dimensions` dimensions and at most 2^28 elements
// (1 GiB of f32).
Result<void> check_shape(std::span<const std::uint64_t> shape, std::size_t dimensions);

// Writes `value` as element number `element` of a part. Its type is the element type of the field.
template <class Value>
void put_element(Value value, std::span<std::byte> out, std::size_t element = 0) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<std::ptrdiff_t>(element * sizeof value));
}

// Number of moments of one channel: mean, maximum, minimum and standard deviation, as f32, in the order of
// ClimDeepLearn's statistics script.
inline constexpr std::size_t kMoments = 4;

}  // namespace penstock
