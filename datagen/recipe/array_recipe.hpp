// Recipes of arrays: large fields are gathered from stocks of noise, small ones are filled in by the recipe.
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
  // The part before it whose channels (its first dimension, of noise that is floats) it tells put_moments()
  // of; the data set then has a companion that tells those of the whole stock. Where there is neither noise
  // nor this, ArraySet::fill says its bytes.
  std::optional<std::size_t> moments_of{};
};

struct ArraySet {
  std::string_view recipe;  // its name, by which its numbers are drawn
  std::uint64_t full_samples = 0;
  std::vector<ArrayPart> parts;  // at most one varies
  NormalSizes sizes{};           // of the part that varies
  SampleNamer name;
  // One sample of a part without noise, zeros before; `sample` is its stream. Any thread.
  void (*fill)(const RandomStream& sample, std::uint64_t index, std::size_t part,
               std::span<std::byte> out) = nullptr;
  std::vector<std::string> label_names{};
};

class ArrayRecipe final : public Recipe {
 public:
  ArrayRecipe(const RecipeRequest& request, ArraySet set);

  std::uint64_t samples() const override { return samples_; }
  void plan(std::uint64_t index, SamplePlan& out) const override;
  std::uint64_t bytes_expected(std::uint64_t index) const override;
  std::vector<std::string> label_names() const override { return set_.label_names; }
  std::span<const Field> fields() const override { return fields_; }
  Result<std::unique_ptr<SampleMaker>> maker() const override;
  std::vector<Companion> companions() const override;

 private:
  class Maker;
  const NoiseStock& stock(Noise noise) const;  // made when it is first asked for; any thread
  void report_moments(std::size_t part, const NoiseArray& array, std::span<std::byte> out) const;
  std::uint64_t bytes_of(std::size_t part, std::uint64_t index) const {
    return fields_[part].varies ? normal_bytes(set_.sizes, stream_, index) : field_bytes(fields_[part]);
  }

  const ArraySet set_;
  const std::uint64_t samples_;
  const std::uint64_t seed_;
  const unsigned threads_;
  const RandomStream stream_;
  std::vector<Field> fields_;  // of the parts
  mutable std::mutex stocks_mutex_;
  mutable std::array<std::unique_ptr<const NoiseStock>, 3> stocks_;  // made when a maker needs them
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
// For a setting "shape": invalid_argument unless it has `sides` sides and at most 2^28 elements (1 GiB of
// f32).
Result<void> check_shape(std::span<const std::uint64_t> shape, std::size_t sides);

// Writes `value`, an element of its field's type, into a part.
template <class Value>
void put_element(Value value, std::span<std::byte> out, std::size_t element = 0) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<std::ptrdiff_t>(element * sizeof value));
}

// Numbers that tell the moments of one channel: mean, most, least and deviation, as f32, in the order of
// ClimDeepLearn's statistics script.
inline constexpr std::size_t kMoments = 4;

}  // namespace penstock
