// A recipe makes the content of a data set. Sample n of seed s has the same bytes on every machine and in
// every format.
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

// The facts about one sample that are known before it is made.
struct SamplePlan {
  std::string key;  // unique name without extension, with '/' as separator: "n00000012/n00000012_345"
  std::uint32_t label = 0;
};

// Sets the key (empty before) and the label of sample `index`. Any thread.
using SampleNamer = std::function<void(std::uint64_t index, SamplePlan& out)>;

// Makes samples and reuses its memory. One thread: each worker has its own maker.
class SampleMaker {
 public:
  virtual ~SampleMaker() = default;
  // The fields of the sample, in the order of Recipe::fields(). Their bytes are valid until the next call.
  virtual Result<std::span<const FieldBytes>> make(std::uint64_t index) = 0;
};

// An object that is stored next to those with samples but contains none, such as statistics of the whole data
// set. It has its own fields.
struct Companion {
  std::string name;           // without extension; the format names the object as if it had one sample
  std::vector<Field> fields;  // every format that can store the samples can store these
  std::vector<std::vector<std::byte>> bytes;  // one per field
};

// A recipe with its options: immutable, any thread.
class Recipe {
 public:
  virtual ~Recipe() = default;
  virtual std::uint64_t samples() const = 0;  // as configured
  // O(1), like bytes_expected(): does not need earlier samples.
  virtual void plan(std::uint64_t index, SamplePlan& out) const = 0;
  // Bytes of all its fields, for --bytes and --dry-run. The sample may differ a little.
  virtual std::uint64_t bytes_expected(std::uint64_t index) const = 0;
  virtual std::vector<std::string> label_names() const = 0;
  // The fields of every sample, at least one. The first is the payload: the manifest has its offset, length
  // and checksum.
  virtual std::span<const Field> fields() const = 0;
  virtual Result<std::unique_ptr<SampleMaker>> maker() const = 0;
  virtual std::vector<Companion> companions() const { return {}; }
};

struct RecipeRequest {
  std::uint64_t samples = 0;  // 0: the recipe's own number
  std::uint64_t seed = 0;
  unsigned threads = 0;  // threads that make the stocks; 0: the number of processors
};

struct RecipeSetting {
  std::string_view key;
  std::string_view value;
};

struct RecipeInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options = {};    // for --set key=value
  std::string_view source;     // the paper or data set that it imitates
  std::uint64_t full_samples;  // of the real data set
  std::string_view sizes;      // describes the distribution: "log-normal, median 112 KB"
  std::string_view format;     // of the real data set: the default of --format
  // Settings of that format, as in the real data set; nullptr: none.
  std::span<const RecipeSetting> (*format_settings)(const Options& options) = nullptr;
  // Settings that make samples small enough to make a few hundred in a test. Empty if they are small by
  // default.
  std::span<const RecipeSetting> small = {};
  double mean_sample_bytes;  // for --list; --bytes uses the plans
  // CRC32C of some samples, names and labels, and of the facts that shape their objects. The contract test
  // computes it and prints the new value if it changes. A data set that was started with another fingerprint
  // is not resumed.
  std::uint32_t fingerprint;
  Result<std::unique_ptr<Recipe>> (*make)(const RecipeRequest& request, const Options& options);
};

const Registry<RecipeInfo>& recipe_registry();

}  // namespace penstock
