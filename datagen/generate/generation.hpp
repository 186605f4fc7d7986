// A data set that is planned but not yet made: recipe, format, seed, settings and number of samples.
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

// How many samples to make. At most one of the four members is set. If none is set, the number is the
// recipe's own.
struct SampleCountRequest {
  uint64_t samples = 0;
  uint64_t bytes = 0;  // asks for as many samples as fit into this size, but at least one
  double scale = 0;    // multiplies the recipe's own number of samples
  std::optional<SizeFor> size_for{};
  bool is_set() const { return samples != 0 || bytes != 0 || scale != 0 || size_for; }
};

// A data set that is planned but not yet made. Immutable, so any thread may use it.
struct Generation {
  GenerationState state;
  std::unique_ptr<Recipe> recipe;
  std::unique_ptr<Format> format;
  uint64_t objects = 0;
  uint64_t payload_expected = 0;  // bytes of all fields, estimated from the plans of at most 16384 samples
  uint64_t bytes_expected = 0;    // bytes of all objects, including those that the format adds
  // True if the format compresses. `bytes_expected` is then only an upper limit: the size without
  // compression, plus the most bytes that compression could add.
  bool bytes_are_limit = false;
  // How the number of samples follows from SampleCountRequest::size_for; "" if that is not set.
  std::string size_explanation{};
  std::string size_for_app{};  // application of SampleCountRequest::size_for; "" if that is not set

  // The words before a printed number of bytes: "about", or "at most about".
  std::string_view size_prefix() const { return bytes_are_limit ? "at most about" : "about"; }

  // An object contains the samples from first_sample() up to, but without, end_sample(), in order.
  uint64_t first_sample(uint64_t object) const;
  uint64_t end_sample(uint64_t object) const;
  uint64_t samples_of(uint64_t object) const { return end_sample(object) - first_sample(object); }
  uint64_t object_of(uint64_t sample) const;
  // Number of folders with objects, below the root; an estimate if there are many thousands of objects.
  uint64_t folders() const;
  // The name of the object. `first` is the plan of its first sample.
  std::string object_name(uint64_t object, const SamplePlan& first) const;
};

// Plans a data set. If `format` is "", uses the recipe's own format. The recipe can have settings for its own
// format; they apply to this format, unless `settings` gives others. A format with the option `shards` makes
// objects of 128 MiB or somewhat more, or only one object, unless `shards` or `samples_per_file` is given.
// `threads` is the number of threads that make the data that all samples of the recipe share; 0: as many as
// there are processors. `invalid_argument` for unknown plug-ins and keys, values out of range and numbers
// that overflow.
Result<Generation> plan_generation(std::string_view recipe, std::string_view format,
                                   std::vector<OptionWord> settings, const SampleCountRequest& count_request,
                                   uint64_t seed, unsigned threads = 0);

}  // namespace penstock
