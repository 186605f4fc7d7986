// Recipes whose samples are arrays. The bytes of large arrays come from a stock of noise (noise_stock.hpp). A
// function of the recipe fills small arrays.
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
  // Index of an earlier part, if this part contains the moments (mean, maximum ...) of that part. The noise
  // of the earlier part must be `floats`. This part then has one set of moments for each channel (each index
  // of the first dimension) of the earlier part. The data set then also has a companion: an object next to
  // the samples, with the moments of the whole stock of noise. If neither `noise` nor `moments_of` is set,
  // ArrayRecipeSpec::fill makes the bytes.
  std::optional<size_t> moments_of{};
};

struct ArrayRecipeSpec {
  std::string_view recipe;  // name of the recipe, which selects its random numbers
  uint64_t full_samples = 0;
  std::vector<ArrayPart> parts;  // at most one has a variable size
  NormalSizes sizes{};           // distribution of the sizes of that part
  SampleNamer name;
  // Fills a part for which neither `noise` nor `moments_of` is set; without this function, such parts are
  // zeros. For the first sample of a maker, `out` contains zeros; later it contains the bytes of the sample
  // before. `sample` is the random stream of the sample with number `index`. Any thread may call it.
  void (*fill)(const RandomStream& sample, uint64_t index, size_t part, std::span<std::byte> out) = nullptr;
  std::vector<std::string> label_names{};
};

class ArrayRecipe final : public Recipe {
 public:
  ArrayRecipe(const RecipeRequest& request, ArrayRecipeSpec spec);

  uint64_t samples() const override { return samples_; }
  void plan(uint64_t index, SamplePlan& out) const override;
  uint64_t bytes_expected(uint64_t index) const override;
  std::vector<std::string> label_names() const override { return spec_.label_names; }
  std::span<const Field> fields() const override { return fields_; }
  Result<std::unique_ptr<SampleMaker>> maker() const override;
  std::vector<Companion> companions() const override;

 private:
  class Maker;
  const NoiseStock& stock(Noise noise) const;  // the first call makes the stock; any thread may call
  void fill_moments(size_t part, const NoiseArray& array, std::span<std::byte> out) const;
  uint64_t part_bytes(size_t part, uint64_t index) const {
    return fields_[part].varies ? normal_bytes(spec_.sizes, stream_, index) : field_bytes(fields_[part]);
  }

  const ArrayRecipeSpec spec_;
  const uint64_t samples_;
  const uint64_t seed_;
  const unsigned threads_;
  const RandomStream stream_;
  std::vector<Field> fields_;  // the field of each part
  mutable std::mutex stocks_mutex_;
  // The stocks, indexed by Noise. A stock is made when a maker first needs it.
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
// Fails with `invalid_argument` unless the setting "shape" has `dimensions` dimensions, none of them 0, and
// at most 2^28 elements (1 GiB of f32).
Result<void> check_shape(std::span<const uint64_t> shape, size_t dimensions);

// Writes `value` as element number `element` of the bytes of a part. Value must be the element type of the
// part's field.
template <class Value>
void put_element(Value value, std::span<std::byte> out, size_t element = 0) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  std::copy(bytes.begin(), bytes.end(), out.begin() + ptrdiff_t(element * sizeof value));
}

// The number of moments of one channel: mean, maximum, minimum and standard deviation, as f32. ClimDeepLearn,
// whose input the recipe `climate` imitates, stores them in this order.
inline constexpr size_t kMoments = 4;

}  // namespace penstock
