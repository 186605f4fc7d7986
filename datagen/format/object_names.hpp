// What the objects of a data set are called, and how its samples are split over them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Rows for a format's option table.
inline constexpr OptionSpec kDirsOption{.name = "dirs",
                                        .role = OptionRole::work,
                                        .type = OptionType::text,
                                        .value = "class|flat|hash:K",
                                        .fallback = "class",
                                        .help = "folders: one a class, none, or K by a hash of the name"};
inline constexpr OptionSpec kShardsOption{
    .name = "shards",
    .role = OptionRole::work,
    .type = OptionType::integer,
    .value = "N",
    .help = "number of objects, with equally many samples (else objects of 128 MiB or somewhat more)",
    .at_least = 1};
inline constexpr OptionSpec kSamplesPerFileOption{
    .name = "samples_per_file",
    .role = OptionRole::work,
    .type = OptionType::integer,
    .value = "N",
    .help = "samples per object; 1: the object is named after the sample",
    .at_least = 1};

// Where an object that is one sample lies: by class as its key says, in no folder, or in one of K.
class Dirs {
 public:
  static Result<Dirs> parse(const Options& options);  // kDirsOption
  std::string name(std::string_view key, std::string_view extension) const;

 private:
  Dirs(bool by_class, std::uint64_t folders) : by_class_(by_class), folders_(folders) {}
  bool by_class_;
  std::uint64_t folders_;  // by the hash of the name; 0: none
};

// Of formats that put several samples into one object. Samples go in order, none is split.
class Shards {
 public:
  // kDirsOption, kShardsOption, kSamplesPerFileOption. invalid_argument where both numbers are given. With
  // neither, all samples make one object: whoever knows their size says better.
  static Result<Shards> parse(const Options& options);

  // One sample an object.
  explicit Shards(Dirs dirs) : Shards(dirs, 0, 1) {}

  // Said so, not by chance: an object is one sample, named after it.
  bool one_sample() const { return per_object_ == 1; }
  std::uint64_t objects(std::uint64_t samples) const;
  std::uint64_t first_sample(std::uint64_t object, std::uint64_t samples) const;
  // "imagenet-00003-of-00064.tfrecord", or, with one sample an object, where its key says.
  std::string name(std::uint64_t object, std::uint64_t objects, std::string_view recipe,
                   std::string_view first_key, std::string_view extension) const;

 private:
  Shards(Dirs dirs, std::uint64_t shards, std::uint64_t per_object)
      : dirs_(dirs), shards_(shards), per_object_(per_object) {}
  Dirs dirs_;
  std::uint64_t shards_;      // 0: by per_object_
  std::uint64_t per_object_;  // 0: by shards_
};

// What stands before "-00003-of-00064" at the end of a text; nothing where it does not end so.
std::optional<std::string_view> before_shard_number(std::string_view text);

// Whether Shards::name gave it to one of several objects: "imagenet-00003-of-00064.npy".
bool is_shard_name(std::string_view object_name);

}  // namespace penstock
