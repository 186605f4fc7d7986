// Names the objects of a data set and decides how its samples are split over them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// These three constants are rows for a format's option table.
inline constexpr OptionSpec kDirsOption{
    .name = "dirs",
    .role = OptionRole::work,
    .type = OptionType::text,
    .value = "class|flat|hash:K",
    .fallback = "class",
    .help = "folders: one per class, none, or K folders by a hash of the name"};
inline constexpr OptionSpec kShardsOption{
    .name = "shards",
    .role = OptionRole::work,
    .type = OptionType::integer,
    .value = "N",
    .help = "number of objects, with equal sample counts (default: objects of 128 MiB or a little more)",
    .at_least = 1};
inline constexpr OptionSpec kSamplesPerFileOption{
    .name = "samples_per_file",
    .role = OptionRole::work,
    .type = OptionType::integer,
    .value = "N",
    .help = "samples per object; 1: the object has the name of the sample",
    .at_least = 1};

// The option `dirs` decides the folder of an object that contains one sample: a folder per class (taken from
// the key), no folder, or one of K folders (`hash:K`).
class Dirs {
 public:
  static Result<Dirs> parse(const Options& options);  // from the value of kDirsOption
  std::string name(std::string_view key, std::string_view extension) const;

 private:
  Dirs(bool by_class, uint64_t folder_count) : by_class_(by_class), folder_count_(folder_count) {}
  bool by_class_;
  uint64_t folder_count_;  // K of `hash:K`: a hash of the name chooses one of K folders; 0: no hash
};

// Splits samples over objects, for formats that put several samples into one object. Samples stay in order,
// and no sample is split.
class Shards {
 public:
  // Reads the options kDirsOption, kShardsOption and kSamplesPerFileOption. `invalid_argument` if the options
  // give both a number of shards and a number of samples per file, or `dirs` without samples_per_file=1. If
  // they give neither number, all samples go into one object. A caller that knows the size of samples should
  // then choose a number itself.
  static Result<Shards> parse(const Options& options);

  // Puts one sample into each object.
  explicit Shards(Dirs dirs) : Shards(dirs, 0, 1) {}

  // Whether the options ask for one sample per object. Objects are then named after their samples. False if
  // an object has one sample only because there are few samples.
  bool one_sample_per_object() const { return samples_per_object_ == 1; }
  uint64_t objects(uint64_t samples) const;
  uint64_t first_sample(uint64_t object, uint64_t samples) const;
  // The name of an object, such as "imagenet-00003-of-00064.tfrecord". With one sample per object, the name
  // comes from the sample's key.
  std::string name(uint64_t object, uint64_t objects, std::string_view recipe, std::string_view first_key,
                   std::string_view extension) const;

 private:
  Shards(Dirs dirs, uint64_t shard_count, uint64_t samples_per_object)
      : dirs_(dirs), shard_count_(shard_count), samples_per_object_(samples_per_object) {}
  Dirs dirs_;
  uint64_t shard_count_;         // requested number of objects; 0: samples_per_object_ decides
  uint64_t samples_per_object_;  // requested number of samples per object; 0: shard_count_ decides
};

// The part of `text` before a shard number at its end, such as "-00003-of-00064". Nothing if `text` does not
// end in a shard number.
std::optional<std::string_view> before_shard_number(std::string_view text);

// Whether the name has the form that Shards::name() gives to objects of several samples, such as
// "imagenet-00003-of-00064.npy".
bool is_shard_name(std::string_view object_name);

}  // namespace penstock
