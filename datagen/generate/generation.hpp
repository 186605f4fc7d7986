// A data set that is decided but not made: which recipe, format, seed, settings, and how many samples.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/generate/generate_state.hpp"
#include "datagen/generate/size_for.hpp"
#include "datagen/recipe/recipe.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// How many samples: at most one of the four; none is the recipe's own number.
struct HowMany {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;  // as many as come nearest to it from below, but at least one
  double scale = 0;         // of the recipe's own number
  std::optional<SizeFor> size_for{};
  bool given() const { return samples != 0 || bytes != 0 || scale != 0 || size_for; }
};

// A data set that is decided but not made. Immutable; any thread.
struct Generation {
  GenerationState state;
  std::unique_ptr<Recipe> recipe;
  std::unique_ptr<Format> format;
  std::uint64_t objects = 0;
  std::uint64_t payload_expected = 0;  // bytes of all fields, from the plans of at most 16384 samples
  std::uint64_t bytes_expected = 0;    // of all objects: with what the format puts around samples
  bool bytes_at_most = false;          // that is what they take if nothing shrinks: the format compresses
  std::string how_many{};              // how HowMany::size_for came to its number; "" without it
  std::string sized_for{};             // its application; "" without it

  // Before a number of bytes that is said: "about", or "at most about".
  std::string_view about() const { return bytes_at_most ? "at most about" : "about"; }

  // An object's samples, from the first to just before the end, in order.
  std::uint64_t first_sample(std::uint64_t object) const;
  std::uint64_t end_sample(std::uint64_t object) const;
  std::uint64_t samples_of(std::uint64_t object) const { return end_sample(object) - first_sample(object); }
  std::uint64_t object_of(std::uint64_t sample) const;
  std::uint64_t folders() const;  // that objects are in, below the root; of many thousands, about as many
  std::string object_name(std::uint64_t object,
                          const SamplePlan& first) const;  // `first`: of its first sample
};

// `format` "" is the recipe's own. Settings that are not given are the recipe's where the format is its own,
// and containers without a given size hold 128 MiB or more (their number is rounded down). Unknown plug-ins,
// keys, values out of range and numbers that overflow are invalid_argument. `threads` is
// RecipeRequest::threads.
Result<Generation> plan_generation(std::string_view recipe, std::string_view format,
                                   std::vector<OptionWord> settings, const HowMany& how_many,
                                   std::uint64_t seed, unsigned threads = 0);

}  // namespace penstock
