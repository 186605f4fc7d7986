// Threads: an open Manifest is immutable, so any thread may read it without a lock.
// Memory: open() maps the file and allocates only for the facts. load() and from_bytes() keep the whole file
// in memory.
// Signals: if another process truncates a mapped file, a read of the mapping raises SIGBUS, which ends the
// program with a message (interrupt.hpp). Publishing does not truncate: it puts a new file in place of the
// old one, and the mapping still shows the old one.
#include "datagen/manifest/manifest.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "datagen/manifest/layout.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {

namespace {

using manifest_layout::aligned;
using manifest_layout::Cursor;
using manifest_layout::Header;
using manifest_layout::Section;
using manifest_layout::SectionRow;

using manifest_layout::kSections;
// Largest size of an object, and of all objects together. File systems have the same limit.
constexpr uint64_t kMostBytes = INT64_MAX;

Error damage(std::string_view mistake) {
  return make_error(Errc::corrupt, "the manifest is damaged: {}", mistake);
}

Error with_file_name(Error error, std::string_view name) {
  error.what = fmt::format("{} ('{}')", error.what, name);
  return error;
}

// Converts the header of version 1, whose section table has no row for kObjectCrcs: inserts such a row, with
// an empty section.
void add_object_crcs(Header& header) {
  auto& rows = header.rows;
  for (uint32_t i = manifest_layout::kNames; i > manifest_layout::kObjectCrcs; --i) {
    rows[i] = rows[i - 1];
    ++rows[i].kind;
  }
  const SectionRow& previous = rows[manifest_layout::kObjectBytes];
  rows[manifest_layout::kObjectCrcs] = {.offset = aligned(previous.offset + previous.bytes),
                                        .kind = manifest_layout::kObjectCrcs};
  ++header.sections;
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

Result<Header> parse_header(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < 16) return damage(fmt::format("it has {} bytes, less than any header", bytes.size()));
  std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof header));
  if (header.magic != manifest_layout::kMagic) return damage("it does not start like a manifest");
  if (header.header_bytes < 24 || header.header_bytes > std::min<size_t>(bytes.size(), 65536))
    return damage("its header is truncated");
  // The checksum is computed as if its own field (bytes 12 to 15) were zero.
  const uint32_t crc_before = crc32c(bytes.first(12));
  const std::array<std::byte, 4> zeros{};
  if (crc32c(bytes.first(header.header_bytes).subspan(16), crc32c(zeros, crc_before)) != header.header_crc32c)
    return damage("its header does not match its checksum");
  // The number of sections by version.
  constexpr std::array<uint32_t, manifest_layout::kVersion + 1> kSectionCounts{
      0, manifest_layout::kNames, manifest_layout::kForms, kSections};
  if (header.version == 0 || header.version > manifest_layout::kVersion)
    return make_error(Errc::unsupported,
                      "the manifest has version {}, and this penstock reads versions {} to {}: use a newer "
                      "penstock, or make the manifest again",
                      header.version, manifest_layout::kVersionWithoutObjectCrcs, manifest_layout::kVersion);
  if (header.header_bytes != sizeof header || header.sections != kSectionCounts[header.version])
    return damage("its header size is wrong");
  if (header.version == manifest_layout::kVersionWithoutObjectCrcs) add_object_crcs(header);
  const SectionRow& forms = header.rows[manifest_layout::kForms];
  if (header.sections == manifest_layout::kForms && !all_zero(std::as_bytes(std::span(&forms, 1))))
    return damage("there are bytes after its section table");
  if (header.file_bytes != bytes.size())
    return damage(fmt::format("it has {} bytes, but {} by its header", bytes.size(), header.file_bytes));
  if (header.names_per_block != manifest_layout::kNamesPerBlock)
    return damage(fmt::format("{} names in a block", header.names_per_block));
  return header;
}

Result<void> check_sections(const Header& header, std::span<const std::byte> bytes) {
  constexpr uint64_t kPerBlock = manifest_layout::kNamesPerBlock;
  const uint64_t blocks = header.objects / kPerBlock + (header.objects % kPerBlock == 0 ? 0 : 1);
  const bool has_object_crcs = (header.flags & manifest_layout::kObjectChecksums) != 0;
  const std::array<uint64_t, kSections> item_counts{
      0, header.samples, header.objects, has_object_crcs ? header.objects : 0, blocks, 0, 0};
  const std::array<uint64_t, kSections> item_bytes{0, sizeof(SampleEntry), 8, 4, 8, 0, 0};
  uint64_t end = header.header_bytes;
  for (uint32_t i = 0; i < header.sections; ++i) {
    const SectionRow& row = header.rows[i];
    if (row.kind != i || row.offset != aligned(end) || row.offset > header.file_bytes ||
        row.bytes > header.file_bytes - row.offset)
      return damage(fmt::format("section {} is outside", i));
    if (item_bytes[i] != 0 && (row.bytes % item_bytes[i] != 0 || row.bytes / item_bytes[i] != item_counts[i]))
      return damage(fmt::format("section {} has the wrong size", i));
    if (!all_zero(bytes.subspan(size_t(end), size_t(row.offset - end))))
      return damage(fmt::format("there are bytes before section {}", i));
    end = row.offset + row.bytes;
  }
  if (end != header.file_bytes) return damage("bytes after the last section");
  if (header.rows[manifest_layout::kFacts].bytes > manifest_layout::kMostFactsBytes)
    return damage("its facts are too long");
  if (header.rows[manifest_layout::kForms].bytes % sizeof(uint64_t) != 0)
    return damage(fmt::format("section {} has the wrong size", unsigned(manifest_layout::kForms)));
  return success();
}

template <class T>
std::span<const T> as_array(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

struct Manifest::State {
  explicit State(std::vector<std::byte> bytes) : owned_bytes(std::move(bytes)), all_bytes(owned_bytes) {}
  State(void* map, size_t size) : mapped(map), all_bytes(static_cast<const std::byte*>(map), size) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (mapped != nullptr) ::munmap(mapped, all_bytes.size());
  }

  std::span<const std::byte> section(Section which) const {
    const SectionRow& row = header.rows[which];
    return all_bytes.subspan(size_t(row.offset), size_t(row.bytes));
  }

  std::vector<std::byte> owned_bytes;  // empty if a file is mapped
  void* mapped = nullptr;              // the read-only mapping; null if the bytes are in `owned_bytes`
  std::span<const std::byte> all_bytes;
  Header header;
  ManifestFacts facts;
};

const SampleEntry Manifest::kNoSample{.object = 0xffffffffU};

Manifest::Manifest(std::unique_ptr<State> state) : state_(std::move(state)) {}
Manifest::Manifest(Manifest&&) noexcept = default;
Manifest& Manifest::operator=(Manifest&&) noexcept = default;
Manifest::~Manifest() = default;

Result<Manifest> Manifest::parse(std::unique_ptr<State> state) {
  PENSTOCK_ASSIGN(state->header, parse_header(state->all_bytes));
  PENSTOCK_TRY(check_sections(state->header, state->all_bytes));
  // The spans below point into the bytes that the State owns. They stay valid when the Manifest is moved,
  // because the State itself is not moved.
  Manifest out(std::move(state));
  State& own_state = *out.state_;
  const auto facts = own_state.section(manifest_layout::kFacts);
  if (crc32c(facts) != own_state.header.rows[manifest_layout::kFacts].crc32c ||
      !manifest_layout::decode_facts(facts, own_state.facts))
    return damage("its facts are wrong");
  own_state.facts.checksums = (own_state.header.flags & manifest_layout::kChecksums) != 0;
  own_state.facts.object_checksums = (own_state.header.flags & manifest_layout::kObjectChecksums) != 0;
  out.entries_ = as_array<SampleEntry>(own_state.section(manifest_layout::kEntries));
  out.object_bytes_ = as_array<uint64_t>(own_state.section(manifest_layout::kObjectBytes));
  out.object_crcs_ = as_array<uint32_t>(own_state.section(manifest_layout::kObjectCrcs));
  out.name_blocks_ = as_array<uint64_t>(own_state.section(manifest_layout::kNameBlocks));
  out.names_ = own_state.section(manifest_layout::kNames);
  // The section begins with the number of forms. After it come the end of each form in the words that follow,
  // these words, and the extents of all samples.
  const auto words = as_array<uint64_t>(own_state.section(manifest_layout::kForms));
  if (words.empty()) return out;
  constexpr uint64_t kNumbersPerExtent = sizeof(SampleExtent) / sizeof(uint64_t);
  const uint64_t count = words.front();
  if (count >= words.size() || out.samples() > (words.size() - 1 - count) / kNumbersPerExtent)
    return damage("its forms are too short");
  const auto extent_numbers = size_t(out.samples() * kNumbersPerExtent);
  out.form_ends_ = words.subspan(1, size_t(count));
  out.form_data_ = words.subspan(1 + size_t(count), words.size() - 1 - size_t(count) - extent_numbers);
  out.extents_ = as_array<SampleExtent>(std::as_bytes(words.last(extent_numbers)));
  return out;
}

Result<Manifest> Manifest::open(const std::filesystem::path& file) {
  // O_NONBLOCK: if a named pipe is in place of the manifest, open() must not wait for a writer.
  const Fd descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor) return errno_error(errno, "cannot open manifest", file.native());
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0)
    return errno_error(errno, "cannot map manifest", file.native());
  if (!S_ISREG(status.st_mode))
    return make_error(Errc::invalid_argument, "'{}' is not a regular file", file.native());
  const auto size = size_t(status.st_size);
  if (size < sizeof(Header))
    return with_file_name(damage(fmt::format("it has {} bytes, less than any header", size)), file.native());
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.get(), 0);
  if (mapped == MAP_FAILED) return errno_error(errno, "cannot map manifest", file.native());
  auto parsed = parse(std::make_unique<State>(mapped, size));
  if (!parsed.ok()) return with_file_name(std::move(parsed).error(), file.native());
  return parsed;
}

Result<Manifest> Manifest::load(Backend& backend, std::string_view name) {
  PENSTOCK_ASSIGN(const auto reader, backend.open(name));
  PENSTOCK_ASSIGN(const uint64_t size, reader->size());
  std::vector<std::byte> bytes;
  try {
    bytes.resize(size_t(size));
  } catch (const std::exception&) {
    return make_error(Errc::exhausted, "no memory for the {} bytes of manifest '{}'", size, name);
  }
  PENSTOCK_TRY(reader->read_at(0, bytes));
  auto loaded = from_bytes(std::move(bytes));
  if (!loaded.ok()) return with_file_name(std::move(loaded).error(), name);
  return loaded;
}

Result<Manifest> Manifest::from_bytes(std::vector<std::byte> bytes) {
  // The bytes may come from anywhere, so the whole manifest is checked.
  PENSTOCK_ASSIGN(Manifest manifest, parse(std::make_unique<State>(std::move(bytes))));
  PENSTOCK_TRY(manifest.check());
  return manifest;
}

Result<void> Manifest::check() const {
  const State& state = *state_;
  for (const Section which :
       {manifest_layout::kEntries, manifest_layout::kObjectBytes, manifest_layout::kObjectCrcs,
        manifest_layout::kNameBlocks, manifest_layout::kNames, manifest_layout::kForms})
    if (crc32c(state.section(which)) != state.header.rows[which].crc32c)
      return damage(fmt::format("section {} does not match its checksum", unsigned(which)));

  uint64_t total_bytes = 0;
  for (uint64_t i = 0; i < objects(); ++i) {
    const uint64_t size = object_bytes_[i];
    if (size > kMostBytes) return damage(fmt::format("object {} is larger than 2^63", i));
    if (size > kMostBytes - total_bytes) return damage("its objects are larger than 2^63 together");
    total_bytes += size;
  }

  Header sums;
  sums.samples = samples();
  sums.objects = objects();
  const std::string mistake = manifest_layout::sum_entries(
      sums, state.facts.label_names.size(), [&](uint64_t i) -> const SampleEntry& { return entries_[i]; },
      [&](uint32_t object) { return object_bytes_[object]; });
  if (!mistake.empty()) return damage(mistake);
  const bool each_sample_is_object = (sums.flags & manifest_layout::kOneObjectPerSample) != 0;
  if (sums.payload_bytes != payload_bytes() || sums.largest_sample != largest_sample() ||
      each_sample_is_object != one_object_per_sample())
    return damage("its totals do not match its entries");

  PENSTOCK_TRY(check_forms());

  Cursor in(names_);
  std::string name;
  for (uint64_t object = 0; object < objects(); ++object) {
    if (object % manifest_layout::kNamesPerBlock == 0) {
      name.clear();
      if (name_blocks_[object / manifest_layout::kNamesPerBlock] != names_.size() - in.left())
        return damage(fmt::format("the names from object {} on are misplaced", object));
    }
    in.read_name(name);
    if (!in.ok() || !check_object_name(name).ok() || name.empty())
      return damage(fmt::format("object {} has an invalid name", object));
  }
  if (!in.at_end()) return damage("bytes after the last name");
  return success();
}

Result<void> Manifest::check_forms() const {
  std::vector<uint64_t> bytes_of_forms;
  for (uint64_t number = 0; number < forms(); ++number) {
    const std::optional<StoredForm> form = decode_form(this->form(number));
    if (!form) return damage(fmt::format("form {} contradicts itself", number));
    bytes_of_forms.push_back(form_bytes(*form));
  }
  if (forms() > 0 && form_ends_.back() != form_data_.size()) return damage("words after the last form");
  for (uint64_t i = 0; i < samples(); ++i) {
    if (entries_[i].form == 0) continue;
    if (entries_[i].form > forms()) return damage(fmt::format("sample {} has no form", i));
    const uint64_t bytes = bytes_of_forms[entries_[i].form - 1];
    if (extents_[i].bytes > bytes || extents_[i].offset > bytes - extents_[i].bytes)
      return damage(fmt::format("sample {} is outside its form", i));
  }
  return success();
}

std::span<const uint64_t> Manifest::form(uint64_t number) const {
  if (number >= form_ends_.size()) return {};
  const uint64_t begin = number == 0 ? 0 : form_ends_[size_t(number) - 1];
  const uint64_t end = form_ends_[size_t(number)];
  if (begin > end || end > form_data_.size()) return {};
  return form_data_.subspan(size_t(begin), size_t(end - begin));
}

const ManifestFacts& Manifest::facts() const {
  return state_->facts;
}
uint64_t Manifest::payload_bytes() const {
  return state_->header.payload_bytes;
}
uint64_t Manifest::largest_sample() const {
  return state_->header.largest_sample;
}
uint64_t Manifest::largest_extent() const {
  if (forms() == 0) return largest_sample();
  uint64_t largest = 0;
  for (uint64_t i = 0; i < samples(); ++i) largest = std::max(largest, extent(i).bytes);
  return largest;
}
std::span<const std::byte> Manifest::bytes() const {
  return state_->all_bytes;
}

bool Manifest::one_object_per_sample() const {
  return (state_->header.flags & manifest_layout::kOneObjectPerSample) != 0;
}

std::optional<uint32_t> Manifest::object_crc32c(uint64_t object) const {
  if (object < object_crcs_.size()) return object_crcs_[object];
  if (one_object_per_sample() && facts().checksums && object < samples()) return sample(object).crc32c;
  return std::nullopt;
}

std::string_view Manifest::object_name(uint64_t object, std::string& scratch) const {
  scratch.clear();
  if (object >= objects()) return {};
  const uint64_t block_start = name_blocks_[object / manifest_layout::kNamesPerBlock];
  // In a damaged manifest the block may start outside of names_. The Cursor checks all bounds after that.
  if (block_start > names_.size()) return {};
  Cursor in(names_.subspan(size_t(block_start)));
  for (uint64_t left = object % manifest_layout::kNamesPerBlock + 1; left > 0 && in.ok(); --left)
    in.read_name(scratch);
  return scratch;
}

std::string Manifest::checksum() const {
  uint64_t digest = 0;
  const auto words = as_array<uint64_t>(state_->all_bytes.first(sizeof(Header)));
  for (const uint64_t word : words) digest = mix64(digest ^ word) * 3 + 1;
  return fmt::format("{:016x}", digest);
}

}  // namespace penstock
