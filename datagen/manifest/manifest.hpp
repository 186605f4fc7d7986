// The manifest: all that a reader needs to know of a corpus. One entry a sample (object, offset, length,
// label, CRC32C) plus front-coded names; opened by mmap; relocatable: no absolute path, time or host in it.
// Layout: docs/manifest.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/base/backend.hpp"
#include "io_backends/base/result.hpp"

namespace penstock {

inline constexpr std::string_view kManifestName = ".penstock/manifest";
inline constexpr std::uint32_t kNoLabel = 0xffffffffU;

// Exactly as on disk, little endian. 32 bytes a sample; with an object a sample the whole costs 48 bytes and
// its name.
struct SampleEntry {
  std::uint64_t offset = 0;  // in the object
  std::uint64_t length = 0;
  std::uint32_t object = 0;  // index of the object
  std::uint32_t label = kNoLabel;
  std::uint32_t crc32c = 0;  // meaningful if Manifest::has_checksums()
  std::uint32_t reserved = 0;
};
static_assert(sizeof(SampleEntry) == 32);

// What is true of the corpus as a whole.
struct ManifestFacts {
  std::string recipe;  // "imagenet"; "scan" for data that somebody else made
  std::string format;  // "files", "tfrecord" ...
  std::string codec;   // what a sample is: "jpeg", "png", "raw", "mixed"
  std::uint64_t seed = 0;
  std::map<std::string, std::string> settings;  // the recipe's, resolved
  bool checksums = false;
  std::vector<std::string> label_names;  // label n is label_names[n]; may be empty
};

// Open manifest: immutable, any thread. Opening checks the header, the bounds of every section and their
// checksum of the header; hostile or truncated files are `corrupt`, never a crash (entries are checked by
// index against the counts).
class Manifest {
 public:
  static Result<Manifest> open(const std::filesystem::path& file);        // by mmap
  static Result<Manifest> load(Backend& backend, std::string_view name);  // through a back end: into memory
  static Result<Manifest> from_bytes(std::vector<std::byte> bytes);
  Manifest(Manifest&&) noexcept;
  Manifest& operator=(Manifest&&) noexcept;
  ~Manifest();

  std::uint64_t samples() const;
  std::uint64_t objects() const;
  std::uint64_t payload_bytes() const;  // sum of the samples' lengths
  const SampleEntry& sample(std::uint64_t index) const;
  std::uint64_t object_bytes(std::uint64_t object) const;

  // The object's name, decoded into `scratch` (no allocation once it has grown). Any thread, each with its
  // own scratch.
  std::string_view object_name(std::uint64_t object, std::string& scratch) const;

  const ManifestFacts& facts() const;
  bool one_object_a_sample() const;  // each sample is the whole of an object of its own
  std::uint64_t largest_sample() const;
  std::string checksum() const;  // of the whole manifest, as hex: names the corpus in records

  std::span<const std::byte> bytes() const;  // as on disk

 private:
  struct State;
  explicit Manifest(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Collects a manifest. Objects are added in order; sample entries may be filled by any thread once there is
// room.
class ManifestBuilder {
 public:
  explicit ManifestBuilder(ManifestFacts facts);
  ~ManifestBuilder();

  std::uint32_t add_object(std::string_view name, std::uint64_t bytes);  // returns its index
  void add_sample(const SampleEntry& entry);

  ManifestFacts& facts();
  Result<std::vector<std::byte>> finish();  // the bytes as on disk
  Result<void> publish(Backend& backend, std::string_view name = kManifestName,
                       Durability durability = Durability::file_and_name);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
