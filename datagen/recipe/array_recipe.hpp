// What recipes of arrays have in common: large fields are gathered from stocks of noise, small ones are
// filled in by the recipe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
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
  // of. Where there is neither noise nor this, fill() says its bytes.
  std::optional<std::size_t> moments_of{};
};

// Subclasses name the samples; without more they have no classes. At most one part varies.
class ArrayRecipe : public Recipe {
 public:
  std::uint64_t samples() const final { return samples_; }
  void plan(std::uint64_t index, SamplePlan& out) const final;
  std::uint64_t bytes_expected(std::uint64_t index) const final;
  std::vector<std::string> label_names() const override { return {}; }
  std::span<const Field> fields() const final { return fields_; }
  Result<std::unique_ptr<SampleMaker>> maker() const final;

 protected:
  // `recipe` names it, and its numbers are drawn by it. `sizes`: of the part that varies.
  ArrayRecipe(std::string_view recipe, const RecipeRequest& request, std::uint64_t full_samples,
              const std::vector<ArrayPart>& parts, const NormalSizes& sizes = {});

  const RandomStream& stream() const { return stream_; }
  virtual void name(std::uint64_t index, SamplePlan& out) const = 0;  // key (empty before) and label
  // One sample of a part without noise; any thread.
  virtual void fill(std::uint64_t index, std::size_t part, std::span<std::byte> out) const;
  const NoiseStock& stock(Noise noise) const;  // made when it is first asked for; any thread

 private:
  class Maker;
  void report_moments(std::size_t part, const NoiseArray& array, std::span<std::byte> out) const;
  std::uint64_t bytes_of(std::size_t part, std::uint64_t index) const {
    return fields_[part].varies ? normal_bytes(sizes_, stream_, index) : field_bytes(fields_[part]);
  }

  const std::string_view recipe_;
  const std::uint64_t samples_;
  const std::uint64_t seed_;
  const unsigned threads_;
  const RandomStream stream_;
  const NormalSizes sizes_;
  std::vector<ArrayPart> parts_;
  std::vector<Field> fields_;  // of the parts
  mutable std::mutex stocks_mutex_;
  mutable std::array<std::unique_ptr<const NoiseStock>, 3> stocks_;  // made when a maker needs them
};

// For a setting "shape": invalid_argument unless it has `sides` sides and at most 2^28 elements (1 GiB of
// f32).
Result<void> check_shape(std::span<const std::uint64_t> shape, std::size_t sides);

// Writes `value`, an element of its field's type, into a part.
template <class Value>
void put_element(Value value, std::span<std::byte> out, std::size_t element = 0) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<std::ptrdiff_t>(element * sizeof value));
}

// Mean, most, least and deviation of one channel, as f32: the order of ClimDeepLearn's statistics script.
inline constexpr std::size_t kMoments = 4;
void put_moments(const Moments& moments, std::span<std::byte> out, std::size_t channel);

}  // namespace penstock
