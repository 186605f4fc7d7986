// For tests and fuzzers of the manifest: forges manifests with valid checksums, and calls all accessors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "datagen/manifest/layout.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {

// Facts that say only that samples have checksums and, if `of_objects` is set, that objects have them too.
inline ManifestFacts with_checksums(bool of_objects) {
  ManifestFacts facts;
  facts.checksums = true;
  facts.object_checksums = of_objects;
  return facts;
}

inline manifest_layout::Header header_of(std::span<const std::byte> bytes) {
  manifest_layout::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

inline void put_header(std::span<std::byte> bytes, manifest_layout::Header header) {
  header.header_crc32c = manifest_layout::header_crc32c(header);
  std::memcpy(bytes.data(), &header, sizeof header);
}

// Corrects the checksums in `bytes`: that of the header, and those of the sections that are completely in
// `bytes`. `bytes` has at least the size of a header.
inline void update_checksums(std::span<std::byte> bytes) {
  manifest_layout::Header header = header_of(bytes);
  for (auto& row : header.rows)
    if (row.offset <= bytes.size() && row.bytes <= bytes.size() - row.offset)
      row.crc32c = crc32c(bytes.subspan(row.offset, row.bytes));
  put_header(bytes, header);
}

// Converts a manifest without object checksums to version 1, in which the section table lacks the row
// kObjectCrcs.
inline std::vector<std::byte> as_version_1(std::vector<std::byte> bytes) {
  manifest_layout::Header header = header_of(bytes);
  header.version = 1;
  header.sections = 5;
  for (uint32_t i = 3; i < 5; ++i) {
    header.rows[i] = header.rows[i + 1];
    header.rows[i].kind = i;
  }
  header.rows[5] = {};
  put_header(bytes, header);
  return bytes;
}

// Calls all accessors for every index, and for some indexes out of range.
inline void call_all_accessors(const Manifest& manifest) {
  std::string scratch;
  uint64_t sum = manifest.payload_bytes() + manifest.largest_sample() + manifest.checksum().size();
  for (uint64_t i = 0; i < manifest.samples() + 3; ++i) {
    const SampleEntry& entry = manifest.sample(i);
    sum += entry.length + manifest.extent(i).bytes + manifest.object_name(entry.object, scratch).size() +
           manifest.object_bytes(entry.object);
  }
  for (uint64_t i = 0; i < manifest.objects() + 3; ++i)
    sum += manifest.object_name(i, scratch).size() + manifest.object_crc32c(i).value_or(0);
  for (uint64_t i = 0; i < manifest.forms() + 3; ++i) {
    const std::optional<StoredForm> form = decode_form(manifest.form(i));
    sum += form ? form_bytes(*form) : manifest.form(i).size();
  }
  for (const uint64_t far : {uint64_t{1} << 32, uint64_t{1} << 63, UINT64_MAX})
    sum += manifest.object_name(far, scratch).size() + manifest.object_bytes(far) +
           manifest.object_crc32c(far).value_or(0) + manifest.sample(far).length;
  static volatile uint64_t sink = 0;
  sink = sink + sum;
}

}  // namespace penstock
