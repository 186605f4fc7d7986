// The byte layout of the manifest: the header, the section table, and the encoding of names and facts. Only
// manifest/*.cpp and their tests use it. docs/reference/manifest.md describes it in prose. A change that old readers
// would misunderstand needs a new kVersion.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/result.hpp"

namespace penstock::manifest_layout {

static_assert(std::endian::native == std::endian::little, "the manifest is used in place, little endian");

inline constexpr std::array<char, 8> kMagic{'P', 'E', 'N', 'S', 'T', 'K', 'M', 'F'};
inline constexpr uint32_t kVersion = 3;
// A manifest without stored forms lacks the section kForms, and has this version, so that older programs can
// read it.
inline constexpr uint32_t kVersionWithoutForms = 2;
// The oldest version that can be read. It lacks the section kObjectCrcs, too.
inline constexpr uint32_t kVersionWithoutObjectCrcs = 1;
inline constexpr uint32_t kNamesPerBlock = 16;
inline constexpr size_t kLongestName = 4096;  // the limit that file systems have for paths
inline constexpr size_t kSectionAlignment = 64;
// The most bytes of the facts. The limit protects memory, because opening a manifest decodes all facts into
// memory.
inline constexpr uint64_t kMostFactsBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMostSettings = 1024;

enum Flag : uint32_t { kChecksums = 1, kOneObjectPerSample = 2, kObjectChecksums = 4 };

enum Section : uint32_t {
  kFacts,
  kEntries,
  kObjectBytes,
  kObjectCrcs,
  kNameBlocks,
  kNames,
  kForms,
  kSections
};

struct SectionRow {
  uint64_t offset = 0;  // in the file; a multiple of kSectionAlignment
  uint64_t bytes = 0;   // number of bytes, without the zeros before the next section
  uint32_t kind = 0;    // a value of enum Section; the table has a row for each, in this order
  uint32_t crc32c = 0;
};
static_assert(sizeof(SectionRow) == 24);

// The header at the start of the file. `magic`, `header_bytes`, `header_crc32c` and `version` have the same
// position in every version. So a reader can tell a newer version from damage.
struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t header_bytes = 0;
  uint32_t header_crc32c = 0;  // CRC32C of the first header_bytes bytes, with this field as zero
  uint32_t version = kVersionWithoutForms;
  uint32_t sections = kForms;  // number of sections; kForms if that section is missing
  uint64_t file_bytes = 0;
  uint64_t samples = 0;
  uint64_t objects = 0;
  uint64_t payload_bytes = 0;
  uint64_t largest_sample = 0;
  uint32_t flags = 0;
  uint32_t names_per_block = kNamesPerBlock;
  uint64_t reserved = 0;
  std::array<SectionRow, kSections> rows;  // zeros for a missing section
  std::array<uint8_t, 8> padding{};        // zeros
};
static_assert(sizeof(Header) == 256 && std::is_trivially_copyable_v<Header>);

constexpr uint64_t aligned(uint64_t offset) {
  return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

uint32_t header_crc32c(Header header);

// Adds the lengths of all entries to out.payload_bytes, and sets out.largest_sample. Sets the flag
// kOneObjectPerSample of `out` if each object is one sample. The number of entries is out.samples. `entry_at`
// returns an entry, and `bytes_of` the size of an object. Returns the first mistake in an entry, or "".
template <class EntryAt, class BytesOf>
std::string sum_entries(Header& out, size_t label_names, EntryAt entry_at, BytesOf bytes_of) {
  bool each_sample_is_object = out.samples == out.objects;
  for (uint64_t i = 0; i < out.samples; ++i) {
    const SampleEntry& entry = entry_at(i);
    if (entry.object >= out.objects) return fmt::format("sample {} is in no object", i);
    const uint64_t size = bytes_of(entry.object);
    if (entry.length > size || entry.offset > size - entry.length)
      return fmt::format("sample {} is outside its object", i);
    if (entry.label != kNoLabel && entry.label >= label_names && label_names != 0)
      return fmt::format("sample {} has an unknown label", i);
    if (__builtin_add_overflow(out.payload_bytes, entry.length, &out.payload_bytes))
      return "more than 2^64 bytes";
    out.largest_sample = std::max(out.largest_sample, entry.length);
    each_sample_is_object =
        each_sample_is_object && entry.object == i && entry.length == size && entry.form == 0;
  }
  if (each_sample_is_object) out.flags |= kOneObjectPerSample;
  return "";
}

void put_varint(std::vector<std::byte>& out, uint64_t value);

// Decodes values one after another from the start of `bytes`. After the first failure ok() is false, and
// every result is zero or empty. Never reads past the end. Never allocates more bytes than `bytes` has.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }
  size_t left() const { return bytes_.size(); }
  uint64_t read_varint();
  std::string_view read_text(uint64_t length);
  // Decodes the next name, which is front-coded. It is stored as the number of bytes that it shares with the
  // beginning of the previous name, the number of its other bytes, and these bytes. When called, `name` must
  // contain the previous name. Fails if the name is longer than kLongestName.
  void read_name(std::string& name);

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

// Appends `name`, front-coded: the part that it has in common with the beginning of `previous` is not stored,
// only its length. `previous` is "" at the start of a block.
void put_name(std::vector<std::byte>& out, std::string_view previous, std::string_view name);

// The most label names that facts of this many bytes may have. The limit keeps the memory of the decoded
// names below a small multiple of the facts. It never refuses a list of different names: at most 1 + 256 +
// 65536 different names take less than 4 bytes each.
constexpr uint64_t most_label_names(uint64_t facts_bytes) {
  return 1 + 256 + 65536 + facts_bytes / 4;
}

// Encodes all facts except the checksum settings, which are flags of the header.
std::vector<std::byte> encode_facts(const ManifestFacts& facts);
bool decode_facts(std::span<const std::byte> bytes, ManifestFacts& out);

}  // namespace penstock::manifest_layout
