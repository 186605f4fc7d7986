#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "datagen/manifest/chunks.hpp"
#include "datagen/manifest/layout.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {

namespace {

using manifest_layout::aligned;
using manifest_layout::Header;
using manifest_layout::Section;

using manifest_layout::kSections;
constexpr std::uint64_t kMostObjects = 0xffffffffU;

Error wrong(std::string how) {
  return make_error(Errc::invalid_argument, "cannot make the manifest: " + std::move(how));
}

template <class T>
std::span<const std::byte> raw(std::span<const T> values) {
  return std::as_bytes(values);
}

}  // namespace

struct ManifestBuilder::State {
  explicit State(ManifestFacts given) : facts(std::move(given)), keeps_object_crcs(facts.object_checksums) {}

  ManifestFacts facts;
  const bool keeps_object_crcs;
  Chunks<SampleEntry, 1 << 15> entries;
  Chunks<std::uint64_t, 1 << 16> object_bytes;
  Chunks<std::uint32_t, 1 << 16> object_crcs;  // one an object, if they are kept
  Chunks<std::uint64_t, 1 << 14> restarts;
  Chunks<std::byte, 1 << 20> names;
  std::string last_name;
  std::vector<std::byte> coded;
  std::optional<Error> mistake;  // the first one

  void mistaken(std::string how) {
    if (!mistake) mistake = wrong(std::move(how));
  }

  // Counts and checks all that was collected.
  Result<Header> totals() const;
  // Every section's bytes in pieces, in order; `visit` returns false to stop.
  template <class Visit>
  bool for_each_piece(Section section, const Header& totals, std::span<const std::byte> facts_bytes,
                      Visit visit) const;
  Result<Header> header(std::span<const std::byte> facts_bytes) const;
};

Result<Header> ManifestBuilder::State::totals() const {
  if (mistake) return *mistake;
  Header out;
  out.samples = entries.size();
  out.objects = object_bytes.size();
  bool own_objects = out.samples == out.objects;
  for (std::uint64_t i = 0; i < out.samples; ++i) {
    const SampleEntry& entry = entries.at(i);
    if (entry.object >= out.objects) return wrong(fmt::format("sample {} is in no object", i));
    const std::uint64_t size = object_bytes.at(entry.object);
    if (entry.length > size || entry.offset > size - entry.length)
      return wrong(fmt::format("sample {} lies outside its object", i));
    if (entry.label != kNoLabel && entry.label >= facts.label_names.size() && !facts.label_names.empty())
      return wrong(fmt::format("sample {} has an unknown label", i));
    if (__builtin_add_overflow(out.payload_bytes, entry.length, &out.payload_bytes))
      return wrong("more than 2^64 bytes");
    out.largest_sample = std::max(out.largest_sample, entry.length);
    own_objects = own_objects && entry.object == i && entry.length == size;
  }
  if (facts.checksums) out.flags |= manifest_layout::kChecksums;
  if (own_objects) out.flags |= manifest_layout::kOneObjectASample;
  if (keeps_object_crcs && !own_objects) out.flags |= manifest_layout::kObjectChecksums;
  return out;
}

template <class Visit>
bool ManifestBuilder::State::for_each_piece(Section section, const Header& totals,
                                            std::span<const std::byte> facts_bytes, Visit visit) const {
  const auto as_raw = [&](auto piece) { return visit(std::as_bytes(piece)); };
  switch (section) {
    case manifest_layout::kFacts:
      return visit(facts_bytes);
    case manifest_layout::kEntries:
      return entries.for_each_chunk(as_raw);
    case manifest_layout::kObjectBytes:
      return object_bytes.for_each_chunk(as_raw);
    case manifest_layout::kObjectCrcs:
      return (totals.flags & manifest_layout::kObjectChecksums) == 0 || object_crcs.for_each_chunk(as_raw);
    case manifest_layout::kRestarts:
      return restarts.for_each_chunk(as_raw);
    default:
      return names.for_each_chunk(as_raw);
  }
}

Result<Header> ManifestBuilder::State::header(std::span<const std::byte> facts_bytes) const {
  PENSTOCK_ASSIGN(Header out, totals());
  if (facts_bytes.size() > manifest_layout::kMostFactsBytes)
    return wrong(fmt::format("its facts (settings, {} label names) take more than {} bytes",
                             facts.label_names.size(), manifest_layout::kMostFactsBytes));
  if (facts.label_names.size() > manifest_layout::most_label_names(facts_bytes.size()))
    return wrong(fmt::format("among its {} label names are many of the same", facts.label_names.size()));
  if (facts.settings.size() > manifest_layout::kMostSettings)
    return wrong(fmt::format("it has {} settings", facts.settings.size()));
  out.header_bytes = sizeof out;
  std::uint64_t end = sizeof out;
  for (std::uint32_t i = 0; i < kSections; ++i) {
    auto& row = out.rows[i];
    row.kind = i;
    row.offset = aligned(end);
    for_each_piece(static_cast<Section>(i), out, facts_bytes, [&row](std::span<const std::byte> piece) {
      row.bytes += piece.size();
      row.crc32c = crc32c(piece, row.crc32c);
      return true;
    });
    end = row.offset + row.bytes;
  }
  out.file_bytes = end;
  out.header_crc32c = manifest_layout::header_crc32c(out);
  return out;
}

ManifestBuilder::ManifestBuilder(ManifestFacts facts) : state_(std::make_unique<State>(std::move(facts))) {}
ManifestBuilder::ManifestBuilder(ManifestBuilder&&) noexcept = default;
ManifestBuilder& ManifestBuilder::operator=(ManifestBuilder&&) noexcept = default;
ManifestBuilder::~ManifestBuilder() = default;

ManifestFacts& ManifestBuilder::facts() {
  return state_->facts;
}
std::uint64_t ManifestBuilder::samples() const {
  return state_->entries.size();
}
std::uint64_t ManifestBuilder::objects() const {
  return state_->object_bytes.size();
}

std::uint32_t ManifestBuilder::add_object(std::string_view name, std::uint64_t bytes) {
  State& state = *state_;
  const std::uint64_t index = state.object_bytes.size();
  if (index >= kMostObjects) {
    state.mistaken("more than 2^32 - 1 objects");
    return 0xffffffffU;
  }
  if (const auto proper = check_object_name(name); !proper.ok())
    state.mistaken(proper.error().what);
  else if (name.empty() || name.size() > manifest_layout::kLongestName)
    state.mistaken(fmt::format("object {} has a name of {} bytes", index, name.size()));
  else if (index > 0 && name == state.last_name)
    state.mistaken(fmt::format("object '{}' comes twice", name));
  state.coded.clear();
  const bool restart = index % manifest_layout::kNamesPerBlock == 0;
  if (restart) state.restarts.push_back(state.names.size());
  manifest_layout::put_name(state.coded, restart ? std::string_view{} : state.last_name, name);
  state.names.append(state.coded);
  state.last_name = name;
  state.object_bytes.push_back(bytes);
  if (state.keeps_object_crcs) state.object_crcs.push_back(0);
  return static_cast<std::uint32_t>(index);
}

void ManifestBuilder::add_sample(const SampleEntry& entry) {
  state_->entries.push_back(entry);
}
void ManifestBuilder::resize_samples(std::uint64_t count) {
  state_->entries.resize(count);
}

void ManifestBuilder::set_sample(std::uint64_t index, const SampleEntry& entry) {
  state_->entries.at(index) = entry;
}

void ManifestBuilder::relabel(std::span<const std::uint32_t> numbers) {
  for (std::uint64_t i = 0; i < state_->entries.size(); ++i) {
    std::uint32_t& label = state_->entries.at(i).label;
    label = label < numbers.size() ? numbers[label] : kNoLabel;
  }
}

void ManifestBuilder::set_object_bytes(std::uint32_t object, std::uint64_t bytes) {
  state_->object_bytes.at(object) = bytes;
}

void ManifestBuilder::set_object_crc32c(std::uint32_t object, std::uint32_t crc32c) {
  if (state_->keeps_object_crcs) state_->object_crcs.at(object) = crc32c;
}

Result<std::vector<std::byte>> ManifestBuilder::finish() {
  State& state = *state_;
  const std::vector<std::byte> facts = manifest_layout::encode_facts(state.facts);
  PENSTOCK_ASSIGN(const Header header, state.header(facts));
  std::vector<std::byte> out;
  try {
    out.reserve(static_cast<std::size_t>(header.file_bytes));
  } catch (const std::exception&) {
    return make_error(Errc::exhausted,
                      fmt::format("no memory for a manifest of {} bytes", header.file_bytes));
  }
  const auto put = [&out](auto piece) {
    const auto bytes = std::as_bytes(piece);
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  const auto start = [&](Section section) {
    out.resize(static_cast<std::size_t>(header.rows[section].offset));
  };
  put(std::span(&header, 1));
  start(manifest_layout::kFacts);
  put(std::span(facts));
  start(manifest_layout::kEntries);
  state.entries.drain(put);
  start(manifest_layout::kObjectBytes);
  state.object_bytes.drain(put);
  start(manifest_layout::kObjectCrcs);
  if ((header.flags & manifest_layout::kObjectChecksums) != 0) state.object_crcs.drain(put);
  start(manifest_layout::kRestarts);
  state.restarts.drain(put);
  start(manifest_layout::kNames);
  state.names.drain(put);
  return out;
}

Result<void> ManifestBuilder::publish(Backend& backend, std::string_view name, Durability durability) {
  const std::vector<std::byte> facts = manifest_layout::encode_facts(state_->facts);
  PENSTOCK_ASSIGN(const Header header, state_->header(facts));
  PENSTOCK_ASSIGN(const auto writer, backend.create(name, header.file_bytes));
  PENSTOCK_TRY(writer->append(std::as_bytes(std::span(&header, 1))));
  std::uint64_t written = sizeof header;
  const std::array<std::byte, manifest_layout::kSectionAlignment> zeros{};
  Result<void> result;
  for (std::uint32_t i = 0; i < kSections && result.ok(); ++i) {
    const auto gap = static_cast<std::size_t>(header.rows[i].offset - written);
    if (gap > 0) PENSTOCK_TRY(writer->append(std::span(zeros).first(gap)));
    state_->for_each_piece(static_cast<Section>(i), header, facts, [&](std::span<const std::byte> piece) {
      result = writer->append(piece);
      return result.ok();
    });
    written = header.rows[i].offset + header.rows[i].bytes;
  }
  PENSTOCK_TRY(std::move(result));
  return writer->publish(durability);
}

}  // namespace penstock
