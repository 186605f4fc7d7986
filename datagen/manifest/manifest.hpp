// The manifest: all that a reader needs to know of a corpus. One entry a sample (object, offset, length,
// label, CRC32C) plus front-coded names; opened by mmap; relocatable: no absolute path, time or host in it.
// Layout: docs/manifest.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datagen/manifest/chunks.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

namespace manifest_layout {
struct Header;
enum Section : std::uint32_t;
}  // namespace manifest_layout

inline constexpr std::string_view kManifestName = ".penstock/manifest";
inline constexpr std::uint32_t kNoLabel = 0xffffffffU;

// Exactly as on disk, little endian. 32 bytes a sample; with an object a sample the whole costs 40.5 bytes
// and its name.
struct SampleEntry {
  std::uint64_t offset = 0;  // in the object
  std::uint64_t length = 0;
  std::uint32_t object = 0;  // index of the object
  std::uint32_t label = kNoLabel;
  std::uint32_t crc32c = 0;  // meaningful if ManifestFacts::checksums
  std::uint32_t reserved = 0;
};
static_assert(sizeof(SampleEntry) == 32);

// What is true of the corpus as a whole.
struct ManifestFacts {
  std::string recipe;  // "imagenet"; "scan" for data that somebody else made
  std::string format;  // "files", "tfrecord" ...
  std::string codec;   // what a sample is: "jpeg", "png", "raw", "jpeg.tfrecord.gz", "mixed"
  std::uint64_t seed = 0;
  std::map<std::string, std::string> settings;  // the recipe's, resolved
  bool checksums = false;                       // of samples
  // Of whole objects, besides the samples'. False as well where each object is one sample, and has its
  // checksum.
  bool object_checksums = false;
  std::vector<std::string> label_names;  // label n is label_names[n]; may be empty
};

// Open manifest: immutable, any thread.
//
// Opening is O(1) in the number of samples: it checks the header (with its checksum), the bounds of every
// section, and the facts. check() is the one pass over the rest. Accessors do not rely on a call of check():
// each keeps within the file whatever the bytes say, and answers "not there" (below) where they make no
// sense. Damage is `corrupt`, a manifest of a newer penstock `unsupported`; never a crash, and
// never more memory than a small multiple of the file. A consistent manifest may still claim sizes that its
// objects lack: reads of those are `truncated`.
class Manifest {
 public:
  static Result<Manifest> open(const std::filesystem::path& file);        // by mmap; not checked
  static Result<Manifest> load(Backend& backend, std::string_view name);  // into memory, checked
  static Result<Manifest> from_bytes(std::vector<std::byte> bytes);       // checked
  Manifest(Manifest&&) noexcept;
  Manifest& operator=(Manifest&&) noexcept;
  ~Manifest();

  // One sequential pass (well below 0.1 s a million samples): every section's checksum, every entry against
  // counts and object sizes, every name. What passed is consistent in itself.
  Result<void> check() const;

  std::uint64_t samples() const { return entries_.size(); }
  std::uint64_t objects() const { return object_bytes_.size(); }
  std::uint64_t payload_bytes() const;  // sum of the samples' lengths
  // An entry with no label, object or length (object 0xffffffff) for an index that is out of range.
  const SampleEntry& sample(std::uint64_t index) const {
    return index < entries_.size() ? entries_[index] : kNoSample;
  }
  std::uint64_t object_bytes(std::uint64_t object) const {  // 0 for an object that is not there
    return object < object_bytes_.size() ? object_bytes_[object] : 0;
  }
  // Of all bytes of the object, what lies around its samples too; nothing where the manifest does not know.
  std::optional<std::uint32_t> object_crc32c(std::uint64_t object) const;

  // The object's name, decoded into `scratch` (no allocation once it has grown); "" for an object that is not
  // there. Any thread, each with its own scratch.
  std::string_view object_name(std::uint64_t object, std::string& scratch) const;

  const ManifestFacts& facts() const;  // where they are as long as the bytes, also when this is moved
  bool one_object_a_sample() const;    // sample n is the whole of object n, for all n
  std::uint64_t largest_sample() const;
  // Names the corpus in records, as 16 hex digits: a digest of the header, which holds the counts and the
  // checksum of every section. O(1); as good as check().
  std::string checksum() const;

  std::span<const std::byte> bytes() const;  // as on disk

 private:
  struct State;
  explicit Manifest(std::unique_ptr<State> state);
  static Result<Manifest> parse(std::unique_ptr<State> state);
  static const SampleEntry kNoSample;

  std::unique_ptr<State> state_;  // the bytes and what was decoded of them; the rest is in them
  std::span<const SampleEntry> entries_;
  std::span<const std::uint64_t> object_bytes_;
  std::span<const std::uint32_t> object_crcs_;
  std::span<const std::uint64_t> restarts_;
  std::span<const std::byte> names_;
};

// Collects a manifest in as much memory as it will take on disk (and a few MiB; with checksums of objects, 4
// bytes an object). One thread, but for the set_ calls. Mistakes (a name twice in a row, an improper name, an
// entry outside its object) are told by finish() and publish(), by name.
class ManifestBuilder {
 public:
  // object_checksums is taken from these, never later.
  explicit ManifestBuilder(ManifestFacts facts)
      : facts_(std::move(facts)), keeps_object_crcs_(facts_.object_checksums) {}

  std::uint32_t add_object(std::string_view name, std::uint64_t bytes);  // returns its index
  void add_sample(const SampleEntry& entry) { entries_.push_back(entry); }

  // For makers that know the samples before their sizes: room for `count` samples in all, then any thread
  // fills any one of them, and sets size and checksum of any object that was added.
  void resize_samples(std::uint64_t count) { entries_.resize(count); }
  void set_sample(std::uint64_t index, const SampleEntry& entry) { entries_.at(index) = entry; }

  // For makers that know their labels' numbers last: every sample of label n gets numbers[n], or no label
  // where `numbers` is shorter.
  void relabel(std::span<const std::uint32_t> numbers);
  void set_object_bytes(std::uint32_t object, std::uint64_t bytes) { object_bytes_.at(object) = bytes; }
  void set_object_crc32c(std::uint32_t object, std::uint32_t crc32c) {  // nothing unless object_checksums
    if (keeps_object_crcs_) object_crcs_.at(object) = crc32c;
  }

  std::uint64_t samples() const { return entries_.size(); }
  std::uint64_t objects() const { return object_bytes_.size(); }
  ManifestFacts& facts() { return facts_; }

  // The bytes as on disk. Spends the builder: it gives its memory back as it goes.
  Result<std::vector<std::byte>> finish();
  // The same bytes straight to their object, all at once; the builder stays as it is.
  Result<void> publish(Backend& backend, std::string_view name = kManifestName,
                       Durability durability = Durability::file_and_name);

 private:
  void mistaken(std::string how);
  // Counts and checks all that was collected.
  Result<manifest_layout::Header> totals() const;
  Result<manifest_layout::Header> header(std::span<const std::byte> facts_bytes) const;
  // A section's bytes in pieces, in order; `visit` returns false to stop.
  template <class Visit>
  bool for_each_piece(manifest_layout::Section section, const manifest_layout::Header& totals,
                      std::span<const std::byte> facts_bytes, Visit visit) const;

  ManifestFacts facts_;
  bool keeps_object_crcs_;
  Chunks<SampleEntry, 1 << 15> entries_;
  Chunks<std::uint64_t, 1 << 16> object_bytes_;
  Chunks<std::uint32_t, 1 << 16> object_crcs_;  // one an object, if they are kept
  Chunks<std::uint64_t, 1 << 14> restarts_;
  Chunks<std::byte, 1 << 20> names_;
  std::string last_name_;
  std::vector<std::byte> coded_;
  std::optional<Error> mistake_;  // the first one
};

}  // namespace penstock
