// The common base of all formats that use the class Shards (object_names.hpp). It splits samples over
// objects, names the objects, and recognises them by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "datagen/format/format.hpp"
#include "datagen/format/object_names.hpp"
#include "datagen/format/sample_type.hpp"

namespace penstock {

inline constexpr OptionSpec kShardedOptions[] = {kDirsOption, kShardsOption, kSamplesPerFileOption};
// The options of formats whose objects have arrays with names.
inline constexpr OptionSpec kArrayOptions[] = {
    kDirsOption,
    kShardsOption,
    kSamplesPerFileOption,
    {.name = "field",
     .role = OptionRole::work,
     .type = OptionType::text,
     .value = "NAME",
     .help = "the array that --scan takes samples from (default: the largest)"},
};

// A format that uses a Shards to split samples over objects and to name the objects. Subclasses write and
// scan the content of an object. It is immutable, so any thread may use it.
class ShardedFormat : public Format {
 public:
  uint64_t objects(uint64_t samples) const final { return shards_.objects(samples); }
  uint64_t first_sample(uint64_t object, uint64_t samples) const final {
    return shards_.first_sample(object, samples);
  }
  std::string object_name(uint64_t object, uint64_t objects, std::string_view recipe,
                          std::string_view first_key, std::string_view extension) const final {
    return shards_.name(object, objects, recipe, first_key, extension_.empty() ? extension : extension_);
  }

  // Decides by the extension of the object's name.
  bool claims(std::string_view object_name) const override {
    return !is_hidden(object_name) && has_extension(object_name, extension_);
  }

 protected:
  // `extension` is the extension of the objects, such as ".tar". "": each object has the extension of its
  // samples. The text of `extension` must outlive the format.
  ShardedFormat(Shards shards, std::string_view extension) : shards_(shards), extension_(extension) {}

  const Shards shards_;

 private:
  const std::string_view extension_;
};

// Makes a format of class FormatClass. Parses the options with Shards::parse(), and returns its errors.
template <class FormatClass>
Result<std::unique_ptr<Format>> make_sharded(const Options& options) {
  PENSTOCK_ASSIGN(const Shards shards, Shards::parse(options));
  return std::make_unique<FormatClass>(shards);
}

// The same for kArrayOptions.
template <class FormatClass>
Result<std::unique_ptr<Format>> make_of_arrays(const Options& options) {
  PENSTOCK_ASSIGN(const Shards shards, Shards::parse(options));
  return std::make_unique<FormatClass>(shards,
                                       options.given("field") ? options.text("field") : std::string());
}

}  // namespace penstock
