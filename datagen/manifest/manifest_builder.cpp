#include <fmt/format.h>

#include <array>
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
constexpr uint64_t kMostObjects = 0xffffffffU;

Error builder_error(std::string mistake) {
  return make_error(Errc::invalid_argument, "cannot make the manifest: " + std::move(mistake));
}

}  // namespace

void ManifestBuilder::record_mistake(std::string mistake) {
  if (!mistake_) mistake_ = builder_error(std::move(mistake));
}

Result<Header> ManifestBuilder::totals() const {
  if (mistake_) return *mistake_;
  Header out;
  out.samples = entries_.size();
  out.objects = object_bytes_.size();
  const std::string mistake = manifest_layout::sum_entries(
      out, facts_.label_names.size(), [&](uint64_t i) -> const SampleEntry& { return entries_.at(i); },
      [&](uint32_t object) { return object_bytes_.at(object); });
  if (!mistake.empty()) return builder_error(mistake);
  const bool each_sample_is_object = (out.flags & manifest_layout::kOneObjectPerSample) != 0;
  if (facts_.checksums) out.flags |= manifest_layout::kChecksums;
  if (has_object_crcs_ && !each_sample_is_object) out.flags |= manifest_layout::kObjectChecksums;
  if (form_ends_.size() > 0) {
    out.version = manifest_layout::kVersion;
    out.sections = kSections;
  }
  return out;
}

template <class Visit>
bool ManifestBuilder::for_each_piece(Section section, const Header& totals,
                                     std::span<const std::byte> facts_bytes, Visit visit) const {
  const auto as_raw = [&](auto piece) { return visit(std::as_bytes(piece)); };
  switch (section) {
    case manifest_layout::kFacts:
      return visit(facts_bytes);
    case manifest_layout::kEntries:
      return entries_.for_each_chunk(as_raw);
    case manifest_layout::kObjectBytes:
      return object_bytes_.for_each_chunk(as_raw);
    case manifest_layout::kObjectCrcs:
      return (totals.flags & manifest_layout::kObjectChecksums) == 0 || object_crcs_.for_each_chunk(as_raw);
    case manifest_layout::kNameBlocks:
      return name_blocks_.for_each_chunk(as_raw);
    case manifest_layout::kNames:
      return names_.for_each_chunk(as_raw);
    default: {
      const uint64_t count = form_ends_.size();
      return visit(std::as_bytes(std::span(&count, 1))) && form_ends_.for_each_chunk(as_raw) &&
             form_data_.for_each_chunk(as_raw) && extents_.for_each_chunk(as_raw);
    }
  }
}

Result<Header> ManifestBuilder::header(std::span<const std::byte> facts_bytes) const {
  PENSTOCK_ASSIGN(Header out, totals());
  if (facts_bytes.size() > manifest_layout::kMostFactsBytes)
    return builder_error(fmt::format("its facts (settings, {} label names) take more than {} bytes",
                                     facts_.label_names.size(), manifest_layout::kMostFactsBytes));
  if (facts_.label_names.size() > manifest_layout::most_label_names(facts_bytes.size()))
    return builder_error(fmt::format("its {} label names have many duplicates", facts_.label_names.size()));
  if (facts_.settings.size() > manifest_layout::kMostSettings)
    return builder_error(fmt::format("it has {} settings", facts_.settings.size()));
  out.header_bytes = sizeof out;
  uint64_t end = sizeof out;
  for (uint32_t i = 0; i < out.sections; ++i) {
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

uint32_t ManifestBuilder::add_object(std::string_view name, uint64_t bytes) {
  const uint64_t index = object_bytes_.size();
  if (index >= kMostObjects) {
    record_mistake("more than 2^32 - 1 objects");
    return 0xffffffffU;
  }
  if (const auto name_check = check_object_name(name); !name_check.ok())
    record_mistake(name_check.error().what);
  else if (name.empty() || name.size() > manifest_layout::kLongestName)
    record_mistake(fmt::format("object {} has a name of {} bytes", index, name.size()));
  else if (index > 0 && name == last_name_)
    record_mistake(fmt::format("object '{}' is listed twice", name));
  coded_name_.clear();
  const bool begins_block = index % manifest_layout::kNamesPerBlock == 0;
  if (begins_block) name_blocks_.push_back(names_.size());
  manifest_layout::put_name(coded_name_, begins_block ? std::string_view{} : last_name_, name);
  names_.append(coded_name_);
  last_name_ = name;
  object_bytes_.push_back(bytes);
  if (has_object_crcs_) object_crcs_.push_back(0);
  return uint32_t(index);
}

void ManifestBuilder::add_sample(const SampleEntry& entry, const SampleExtent& extent) {
  entries_.push_back(entry);
  if (form_ends_.size() == 0) return;
  extents_.resize(entries_.size());  // samples before the first form have none
  if (entry.form != 0) extents_.at(entries_.size() - 1) = extent;
}

uint32_t ManifestBuilder::add_form(std::span<const uint64_t> words) {
  form_data_.append(words);
  form_ends_.push_back(form_data_.size());
  extents_.resize(entries_.size());
  return uint32_t(form_ends_.size());
}

void ManifestBuilder::copy_forms(const Manifest& manifest) {
  for (uint64_t number = 0; number < manifest.forms(); ++number) add_form(manifest.form(number));
  if (manifest.forms() == 0) return;
  for (uint64_t i = 0; i < manifest.samples(); ++i)
    if (manifest.sample(i).form != 0) extents_.at(i) = manifest.extent(i);
}

void ManifestBuilder::relabel(std::span<const uint32_t> numbers) {
  for (uint64_t i = 0; i < entries_.size(); ++i) {
    uint32_t& label = entries_.at(i).label;
    label = label < numbers.size() ? numbers[label] : kNoLabel;
  }
}

Result<std::vector<std::byte>> ManifestBuilder::finish() {
  const std::vector<std::byte> facts = manifest_layout::encode_facts(facts_);
  PENSTOCK_ASSIGN(const Header header, this->header(facts));
  std::vector<std::byte> out;
  try {
    out.reserve(size_t(header.file_bytes));
  } catch (const std::exception&) {
    return make_error(Errc::exhausted, "no memory for a manifest of {} bytes", header.file_bytes);
  }
  const auto append_bytes = [&out](auto piece) {
    const auto bytes = std::as_bytes(piece);
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  const auto pad_to = [&](Section section) { out.resize(size_t(header.rows[section].offset)); };
  append_bytes(std::span(&header, 1));
  pad_to(manifest_layout::kFacts);
  append_bytes(std::span(facts));
  pad_to(manifest_layout::kEntries);
  entries_.visit_and_free(append_bytes);
  pad_to(manifest_layout::kObjectBytes);
  object_bytes_.visit_and_free(append_bytes);
  pad_to(manifest_layout::kObjectCrcs);
  if ((header.flags & manifest_layout::kObjectChecksums) != 0) object_crcs_.visit_and_free(append_bytes);
  pad_to(manifest_layout::kNameBlocks);
  name_blocks_.visit_and_free(append_bytes);
  pad_to(manifest_layout::kNames);
  names_.visit_and_free(append_bytes);
  if (header.sections > manifest_layout::kForms) {
    pad_to(manifest_layout::kForms);
    const uint64_t count = form_ends_.size();
    append_bytes(std::span(&count, 1));
    form_ends_.visit_and_free(append_bytes);
    form_data_.visit_and_free(append_bytes);
    extents_.visit_and_free(append_bytes);
  }
  return out;
}

Result<void> ManifestBuilder::publish(Backend& backend, std::string_view name, Durability durability) {
  const std::vector<std::byte> facts = manifest_layout::encode_facts(facts_);
  PENSTOCK_ASSIGN(const Header header, this->header(facts));
  PENSTOCK_ASSIGN(const auto writer, backend.create(name, header.file_bytes));
  PENSTOCK_TRY(writer->append(std::as_bytes(std::span(&header, 1))));
  uint64_t bytes_written = sizeof header;
  const std::array<std::byte, manifest_layout::kSectionAlignment> zeros{};
  Result<void> result;
  for (uint32_t i = 0; i < header.sections && result.ok(); ++i) {
    const auto padding_bytes = size_t(header.rows[i].offset - bytes_written);
    if (padding_bytes > 0) PENSTOCK_TRY(writer->append(std::span(zeros).first(padding_bytes)));
    for_each_piece(static_cast<Section>(i), header, facts, [&](std::span<const std::byte> piece) {
      result = writer->append(piece);
      return result.ok();
    });
    bytes_written = header.rows[i].offset + header.rows[i].bytes;
  }
  PENSTOCK_TRY(std::move(result));
  return writer->publish(durability);
}

}  // namespace penstock
