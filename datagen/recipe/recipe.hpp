// A recipe makes a data set: sample n of seed s has the same bytes whoever makes it, wherever it goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/sample/sample.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/plugin.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// What the recipe says of one sample before making it.
struct SamplePlan {
  std::string key;  // unique name without extension, '/'-separated: "n00000012/n00000012_345"
  std::uint32_t label = 0;
};

// Names sample `index`: its key (empty before) and its label. Any thread.
using SampleNamer = std::function<void(std::uint64_t index, SamplePlan& out)>;

// Makes samples; one thread (each worker has its own), everything reused between samples.
class SampleMaker {
 public:
  virtual ~SampleMaker() = default;
  // Its fields, in the order of Recipe::fields(). Their bytes stay valid until the next call.
  virtual Result<std::span<const FieldBytes>> make(std::uint64_t index) = 0;
};

// An object that is next to those of the samples and holds none: one set of fields of its own (statistics of
// the whole data set).
struct Companion {
  std::string name;           // without extension; the format names it as it does an object of one sample
  std::vector<Field> fields;  // of any format that the samples' own fields can be in
  std::vector<std::vector<std::byte>> bytes;  // of each field
};

// A configured recipe: immutable, any thread.
class Recipe {
 public:
  virtual ~Recipe() = default;
  virtual std::uint64_t samples() const = 0;  // as configured
  // O(1), both: any sample without those before it.
  virtual void plan(std::uint64_t index, SamplePlan& out) const = 0;
  // Of all its fields, for --bytes and --dry-run; what is made may differ a little.
  virtual std::uint64_t bytes_expected(std::uint64_t index) const = 0;
  virtual std::vector<std::string> label_names() const = 0;
  // What every sample consists of; at least one. The first is the payload: what the manifest points to, with
  // its checksum.
  virtual std::span<const Field> fields() const = 0;
  virtual Result<std::unique_ptr<SampleMaker>> maker() const = 0;
  virtual std::vector<Companion> companions() const { return {}; }
};

struct RecipeRequest {
  std::uint64_t samples = 0;  // 0: the recipe's own number
  std::uint64_t seed = 0;
  unsigned threads = 0;  // that stocks are made with; 0: as many as there are processors
};

struct RecipeSetting {
  std::string_view key;
  std::string_view value;
};

struct RecipeInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options = {};    // for --set key=value
  std::string_view source;     // the paper or data set that it follows
  std::uint64_t full_samples;  // of the real thing
  std::string_view sizes;      // describes their distribution: "log-normal, median 112 KB"
  std::string_view format;     // that the real thing has: what --format is without being said
  // Of that format, likewise; nullptr is none.
  std::span<const RecipeSetting> (*format_settings)(const Options& options) = nullptr;
  // Settings that make a sample so small that a few hundred can be made for a trial; none where it is anyway.
  std::span<const RecipeSetting> small = {};
  double mean_sample_bytes;  // for --list; --bytes goes by the plans themselves
  // CRC32C of some samples, names and labels and of what shapes their objects, which the contract test makes;
  // it says the new one when they change. A data set started with another one is not resumed.
  std::uint32_t fingerprint;
  Result<std::unique_ptr<Recipe>> (*make)(const RecipeRequest& request, const Options& options);
};

const Registry<RecipeInfo>& recipe_registry();

}  // namespace penstock
