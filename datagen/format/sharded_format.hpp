// What formats that put several samples into one object have in common: everything outside of the object.
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

// Splits and names objects as Shards says. Subclasses say what is in one. Immutable; any thread.
class ShardedFormat : public Format {
 public:
  std::uint64_t objects(std::uint64_t samples) const final { return shards_.objects(samples); }
  std::uint64_t first_sample(std::uint64_t object, std::uint64_t samples) const final {
    return shards_.first_sample(object, samples);
  }
  std::string object_name(std::uint64_t object, std::uint64_t objects, std::string_view recipe,
                          std::string_view first_key, std::string_view extension) const final {
    return shards_.name(object, objects, recipe, first_key, extension_.empty() ? extension : extension_);
  }

  // By the extension.
  bool claims(std::string_view object_name) const override {
    return !hidden(object_name) && has_extension(object_name, extension_);
  }

 protected:
  // `extension`: of the objects, such as ".tar", or "": their samples' own; outlives the format.
  ShardedFormat(Shards shards, std::string_view extension) : shards_(shards), extension_(extension) {}

  const Shards shards_;

 private:
  const std::string_view extension_;
};

// A format's factory: a Made out of the options of Shards::parse(), whose errors come back.
template <class Made>
Result<std::unique_ptr<Format>> make_sharded(const Options& options) {
  PENSTOCK_ASSIGN(const Shards shards, Shards::parse(options));
  return std::make_unique<Made>(shards);
}

}  // namespace penstock
