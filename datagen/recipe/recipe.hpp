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

// A function that sets two members of `out` for sample `index`: the label, and the key, which is empty before
// the call. Any thread may call it.
using SampleNamer = std::function<void(uint64_t index, SamplePlan& out)>;

// Makes samples and reuses its memory for each sample. Only one thread may use it, so each worker has its own
// maker.
class SampleMaker {
 public:
  virtual ~SampleMaker() = default;
  // Makes sample `index` and returns its fields, in the order of Recipe::fields(). Their bytes are valid
  // until the next call.
  virtual Result<std::span<const FieldBytes>> make(uint64_t index) = 0;
};

// An object that is stored next to the objects with samples, but contains no samples: for example statistics
// of the whole data set. It has its own fields.
struct Companion {
  std::string name;           // without extension; the object's name is made as for one sample
  std::vector<Field> fields;  // any format that can store the samples can also store these
  std::vector<std::vector<std::byte>> bytes;  // the bytes of each field
};

// A recipe with its options. It is immutable, so any thread may use it.
class Recipe {
 public:
  virtual ~Recipe() = default;
  virtual uint64_t samples() const = 0;  // number of samples in the data set
  // plan() describes sample `index` in `out`. plan() and bytes_expected() take constant time: they do not
  // need earlier samples.
  virtual void plan(uint64_t index, SamplePlan& out) const = 0;
  // The expected number of bytes of all fields of the sample, for --bytes and --dry-run. The real number may
  // be a little different.
  virtual uint64_t bytes_expected(uint64_t index) const = 0;
  virtual std::vector<std::string> label_names() const = 0;
  // The fields of every sample, at least one. The first field is the payload: the manifest has its offset,
  // length and checksum.
  virtual std::span<const Field> fields() const = 0;
  virtual Result<std::unique_ptr<SampleMaker>> maker() const = 0;
  virtual std::vector<Companion> companions() const { return {}; }
};

struct RecipeRequest {
  uint64_t samples = 0;  // number of samples; 0: the number in the real data set
  uint64_t seed = 0;
  unsigned threads = 0;  // number of threads that make the stocks; 0: as many as there are processors
};

struct RecipeSetting {
  std::string_view key;
  std::string_view value;
};

struct RecipeInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options = {};  // for --set key=value
  std::string_view source;   // the paper or data set that the recipe imitates
  uint64_t full_samples;     // number of samples in the real data set
  std::string_view sizes;    // describes the distribution: "log-normal, median 112 KB"
  std::string_view format;   // format of the real data set, which is the default of --format
  // Returns the settings of the format that the real data set uses; nullptr: there are none.
  std::span<const RecipeSetting> (*format_settings)(const Options& options) = nullptr;
  // Settings for tests, with which samples are so small that a few hundred are made quickly. Empty if samples
  // are always small.
  std::span<const RecipeSetting> small_settings = {};
  double mean_sample_bytes;  // only for --list; --bytes adds up bytes_expected()
  // CRC32C of some samples, names and labels, of the companions, and of settings that change the objects. If
  // it has changed since an unfinished data set was started, that data set cannot be resumed. The contract
  // test computes it, and prints the new value if it is not the one given here.
  uint32_t fingerprint;
  Result<std::unique_ptr<Recipe>> (*make)(const RecipeRequest& request, const Options& options);
};

const Registry<RecipeInfo>& recipe_registry();

}  // namespace penstock
