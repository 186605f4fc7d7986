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
  uint32_t label = 0;
};

// Sets the key (empty before) and the label of sample `index`. Any thread.
using SampleNamer = std::function<void(uint64_t index, SamplePlan& out)>;

// Makes samples and reuses its memory. One thread: each worker has its own maker.
class SampleMaker {
 public:
  virtual ~SampleMaker() = default;
  // The fields of the sample, in the order of Recipe::fields(). Their bytes are valid until the next call.
  virtual Result<std::span<const FieldBytes>> make(uint64_t index) = 0;
};

// An object that is stored next to the objects with samples but contains none, such as statistics of the
// whole data set. It has its own fields.
struct Companion {
  std::string name;           // without extension; the format names the object as if it had one sample
  std::vector<Field> fields;  // a format that can store the samples can also store these fields
  std::vector<std::vector<std::byte>> bytes;  // the bytes of each field
};

// A recipe with its options. It is immutable, so any thread may use it.
class Recipe {
 public:
  virtual ~Recipe() = default;
  virtual uint64_t samples() const = 0;  // number of samples in the data set
  // plan() and bytes_expected() take constant time: they do not need earlier samples.
  virtual void plan(uint64_t index, SamplePlan& out) const = 0;
  // The expected bytes of all fields of the sample, for --bytes and --dry-run. The sample may have a few more
  // or fewer.
  virtual uint64_t bytes_expected(uint64_t index) const = 0;
  virtual std::vector<std::string> label_names() const = 0;
  // The fields of every sample, at least one. The first is the payload: the manifest has its offset, length
  // and checksum.
  virtual std::span<const Field> fields() const = 0;
  virtual Result<std::unique_ptr<SampleMaker>> maker() const = 0;
  virtual std::vector<Companion> companions() const { return {}; }
};

struct RecipeRequest {
  uint64_t samples = 0;  // number of samples; 0: that of the real data set
  uint64_t seed = 0;
  unsigned threads = 0;  // threads that make the stocks; 0: the number of processors
};

struct RecipeSetting {
  std::string_view key;
  std::string_view value;
};

struct RecipeInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options = {};  // for --set key=value
  std::string_view source;   // the paper or data set that it imitates
  uint64_t full_samples;     // number of samples in the real data set
  std::string_view sizes;    // describes the distribution: "log-normal, median 112 KB"
  std::string_view format;   // format of the real data set, which is the default of --format
  // Settings of the format, as in the real data set; nullptr: none.
  std::span<const RecipeSetting> (*format_settings)(const Options& options) = nullptr;
  // Settings for tests: they make samples so small that a few hundred are made quickly. Empty if samples are
  // small by default.
  std::span<const RecipeSetting> small_settings = {};
  double mean_sample_bytes;  // for --list; --bytes adds up bytes_expected()
  // CRC32C of some samples, names and labels, and of the facts that shape their objects. The contract test
  // computes it, and prints the new value if it differs. A data set that was started with another fingerprint
  // cannot be resumed.
  uint32_t fingerprint;
  Result<std::unique_ptr<Recipe>> (*make)(const RecipeRequest& request, const Options& options);
};

const Registry<RecipeInfo>& recipe_registry();

}  // namespace penstock
