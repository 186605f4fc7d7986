// The manifest of a corpus lists all samples. It has one entry per sample (object, offset, length, label,
// CRC32C), and the names of objects. A manifest in a local file is opened by mmap. It contains no absolute
// path, time or host, so that a corpus can be moved. Layout: docs/reference/manifest.md.
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
#include "datagen/manifest/stored_form.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

namespace manifest_layout {
struct Header;
enum Section : uint32_t;
}  // namespace manifest_layout

inline constexpr std::string_view kManifestName = ".penstock/manifest";
inline constexpr uint32_t kNoLabel = 0xffffffffU;

// The entry of a sample: 32 bytes, the same in memory and on disk (little endian). If each object is one
// sample, the manifest also has 8.5 bytes and the object's name for each sample.
struct SampleEntry {
  // Where the sample's bytes are in the object. If it has a form, these are the stored bytes that must be
  // read to get the sample; other samples may need the same.
  uint64_t offset = 0;
  uint64_t length = 0;
  uint32_t object = 0;  // index of the object
  uint32_t label = kNoLabel;
  // Of the sample's bytes (with a form: after it is undone). Valid only if ManifestFacts::checksums is set.
  uint32_t crc32c = 0;
  uint32_t form = 0;  // 0: the bytes are in the object as they are; n: stored in form number n - 1
};
static_assert(sizeof(SampleEntry) == 32);

// Facts about the whole corpus.
struct ManifestFacts {
  std::string recipe;  // "imagenet"; "scan" for data that Penstock did not generate
  std::string format;  // "files", "tfrecord" ...
  std::string codec;   // codec of a sample: "jpeg", "png", "raw", "jpeg.tfrecord.gz", "mixed"
  uint64_t seed = 0;
  std::map<std::string, std::string> settings;  // of the recipe, with defaults, and of the format
  bool checksums = false;                       // whether samples have checksums
  // Whether whole objects have checksums of their own. False if each object is one sample, because the
  // sample's checksum is enough then.
  bool object_checksums = false;
  std::vector<std::string> label_names;  // label n is called label_names[n]; empty if labels have no names
};

// An open manifest. It is immutable, so any thread may use it.
//
// open() takes the same time for any number of samples. It checks the header with its checksum, the bounds of
// every section, and the facts. check() makes one pass over the rest.
//
// Accessors are safe without check(): they never read outside the file, whatever its bytes are. For values
// that make no sense they return an empty result, as described at each accessor.
//
// Errors: damage is `corrupt`; a manifest of a newer version is `unsupported`. A damaged file never causes a
// crash, and never takes more memory than a small multiple of its size. A manifest that passes check() may
// still claim sizes that its objects do not have. Reading such a sample then gives `truncated`.
class Manifest {
 public:
  static Result<Manifest> open(const std::filesystem::path& file);  // maps the file, does not call check()
  // Reads the object into memory and calls check().
  static Result<Manifest> load(Backend& backend, std::string_view name);
  static Result<Manifest> from_bytes(std::vector<std::byte> bytes);  // calls check()
  Manifest(Manifest&&) noexcept;
  Manifest& operator=(Manifest&&) noexcept;
  ~Manifest();

  // Checks the whole manifest in one sequential pass: the checksum of every section, every entry against
  // counts and object sizes, and every name. After success no part of the manifest contradicts another. Takes
  // well below 0.1 s per million samples.
  Result<void> check() const;

  uint64_t samples() const { return entries_.size(); }
  uint64_t objects() const { return object_bytes_.size(); }
  uint64_t payload_bytes() const;  // sum of the lengths of all entries
  // The entry of a sample. If `index` is out of range, the result is an entry without label and length, and
  // with object 0xffffffff.
  const SampleEntry& sample(uint64_t index) const {
    return index < entries_.size() ? entries_[index] : kNoSample;
  }
  // The forms of samples that are not in their object as they are. form() returns the words of one, for
  // decode_form(); none if there is no such form.
  uint64_t forms() const { return form_ends_.size(); }
  std::span<const uint64_t> form(uint64_t number) const;
  // Which bytes of its form the sample is. If it has no form: all bytes of the entry.
  SampleExtent extent(uint64_t index) const {
    const SampleEntry& entry = sample(index);
    return entry.form != 0 && index < extents_.size() ? extents_[index] : SampleExtent{0, entry.length};
  }
  uint64_t object_bytes(uint64_t object) const {  // 0 for an object that does not exist
    return object < object_bytes_.size() ? object_bytes_[object] : 0;
  }
  // The CRC32C of all bytes of the object, including those around samples. If the object is one sample, this
  // is the sample's checksum. Nothing if the manifest does not have the checksum.
  std::optional<uint32_t> object_crc32c(uint64_t object) const;

  // The object's name; "" for an object that does not exist. The name is decoded into `scratch`, which
  // allocates memory only while it is too small for the names. Each thread must pass a `scratch` of its own.
  std::string_view object_name(uint64_t object, std::string& scratch) const;

  const ManifestFacts& facts() const;  // the reference stays valid when the Manifest is moved
  bool one_object_per_sample() const;  // true if, for all n, sample n is the whole object n
  uint64_t largest_sample() const;     // the largest length of an entry
  // The largest number of bytes that a sample has when its form is undone.
  uint64_t largest_extent() const;
  // Identifies the corpus in result records, by 16 hex digits. It is a digest of the header only, so it takes
  // constant time. The header contains the counts and the checksum of every section. So the digest describes
  // the content if check() has succeeded.
  std::string checksum() const;

  std::span<const std::byte> bytes() const;  // the whole manifest, as on disk

 private:
  struct State;
  explicit Manifest(std::unique_ptr<State> state);
  static Result<Manifest> parse(std::unique_ptr<State> state);
  Result<void> check_forms() const;
  static const SampleEntry kNoSample;

  // The bytes and the decoded facts. The members below point into the bytes.
  std::unique_ptr<State> state_;
  std::span<const SampleEntry> entries_;
  std::span<const uint64_t> object_bytes_;
  std::span<const uint32_t> object_crcs_;
  std::span<const uint64_t> name_blocks_;
  std::span<const std::byte> names_;
  std::span<const uint64_t> form_ends_;  // of each form: where it ends in form_data_
  std::span<const uint64_t> form_data_;
  std::span<const SampleExtent> extents_;  // one per sample, if there are forms
};

// Collects the entries of a new manifest. Takes as much memory as the manifest will take on disk, plus a few
// MiB. If `facts.object_checksums` is set, it takes 4 bytes per object for them, even if each object is one
// sample and the manifest does not store them.
// Only one thread at a time may use it, except for the functions set_...().
// finish() and publish() report mistakes and name the object or sample: the same name twice in a row, an
// invalid name, an entry outside its object.
class ManifestBuilder {
 public:
  // `facts.object_checksums` decides whether objects get checksums. A later change of
  // facts().object_checksums has no effect.
  explicit ManifestBuilder(ManifestFacts facts)
      : facts_(std::move(facts)), has_object_crcs_(facts_.object_checksums) {}

  uint32_t add_object(std::string_view name, uint64_t bytes);  // returns the object's index
  // `extent` is used only if the entry has a form; all forms must be added before.
  void add_sample(const SampleEntry& entry, const SampleExtent& extent = {});
  // Adds a form of samples, as encode_form() makes it. Returns the number for SampleEntry::form.
  uint32_t add_form(std::span<const uint64_t> words);

  // Makes entries for `count` samples in total. It is for callers that know the number of samples before they
  // know the size of each. After that, any thread may set any entry, and the size and checksum of any object
  // that was added.
  void resize_samples(uint64_t count) { entries_.resize(count); }
  void set_sample(uint64_t index, const SampleEntry& entry) { entries_.at(index) = entry; }
  // Takes over the forms and extents of all samples of a manifest that has the same samples. Call it after
  // resize_samples().
  void copy_forms(const Manifest& manifest);

  // Changes the label n of a sample to numbers[n], for every sample. If `numbers` is too short for n, the
  // sample then has no label. It is for callers that know the final numbers of labels only at the end.
  void relabel(std::span<const uint32_t> numbers);
  void set_object_bytes(uint32_t object, uint64_t bytes) { object_bytes_.at(object) = bytes; }
  // does nothing if facts.object_checksums was not set
  void set_object_crc32c(uint32_t object, uint32_t crc32c) {
    if (has_object_crcs_) object_crcs_.at(object) = crc32c;
  }

  uint64_t samples() const { return entries_.size(); }
  uint64_t objects() const { return object_bytes_.size(); }
  ManifestFacts& facts() { return facts_; }

  // Returns the bytes of the manifest, as on disk. Frees the builder's memory while it does so, so the
  // builder cannot be used afterwards.
  Result<std::vector<std::byte>> finish();
  // Publishes the manifest as one object, with the bytes that finish() would return. Does not change the
  // builder.
  Result<void> publish(Backend& backend, std::string_view name = kManifestName,
                       Durability durability = Durability::file_and_name);

 private:
  void record_mistake(std::string mistake);
  // Checks everything that was collected, and returns a header with the counts.
  Result<manifest_layout::Header> totals() const;
  Result<manifest_layout::Header> header(std::span<const std::byte> facts_bytes) const;
  // Calls `visit` with the pieces of a section's bytes, in order. Stops when `visit` returns false.
  template <class Visit>
  bool for_each_piece(manifest_layout::Section section, const manifest_layout::Header& totals,
                      std::span<const std::byte> facts_bytes, Visit visit) const;

  ManifestFacts facts_;
  bool has_object_crcs_;
  Chunks<SampleEntry, 1 << 15> entries_;
  Chunks<uint64_t, 1 << 16> object_bytes_;
  Chunks<uint32_t, 1 << 16> object_crcs_;  // one per object, if has_object_crcs_
  Chunks<uint64_t, 1 << 14> name_blocks_;
  Chunks<std::byte, 1 << 20> names_;
  Chunks<uint64_t, 1 << 12> form_ends_;
  Chunks<uint64_t, 1 << 14> form_data_;
  Chunks<SampleExtent, 1 << 15> extents_;  // one per sample, if there are forms
  std::string last_name_;
  std::vector<std::byte> coded_name_;
  std::optional<Error> mistake_;  // the first mistake that a caller made, such as an invalid name
};

}  // namespace penstock
