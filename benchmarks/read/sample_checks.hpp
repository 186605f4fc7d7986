// Checks whether a sample was read correctly. Its length and its checksum must match the manifest, and a
// picture must be decodable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "benchmarks/read/read_engine.hpp"
#include "datagen/codec/png.hpp"
#include "datagen/format/form_reader.hpp"
#include "datagen/format/sample_opener.hpp"

namespace penstock {

// The checks of one sample. Each fails with an error that names the sample. Only one thread may use it.
// Borrows what `work` points to.
class SampleChecks {
 public:
  explicit SampleChecks(const ReadWork& work) : work_(work), unpacker_(*work.manifest) {}

  Result<void> prepare_decoder();  // must be called before the first decode()

  // Fails with `truncated` unless `bytes` is the length of the sample.
  Result<void> check_length(const SampleList::Sample& entry, uint64_t bytes) const {
    return bytes == entry.length ? success() : wrong_length(entry, bytes);
  }
  // Fails with `corrupt` if the sample's CRC32C differs from the manifest's, or its stored bytes are damaged.
  // Other errors say nothing about the bytes; they are those of SampleUnpacker::open(). `sample` is the index
  // of the sample.
  Result<void> check_checksum(uint64_t sample, const SampleList::Sample& entry,
                              std::span<const std::byte> bytes);
  // Decodes the sample from JPEG or PNG to RGB, and adds its warnings to `warnings`.
  Result<void> decode(uint64_t sample, const SampleList::Sample& entry, std::span<const std::byte> bytes,
                      PictureWarningCounts& warnings);

 private:
  Result<void> wrong_length(const SampleList::Sample& entry, uint64_t bytes) const;

  const ReadWork& work_;
  SampleUnpacker unpacker_;
  std::optional<SampleOpener> opener_;
  std::unique_ptr<PictureDecoder> decoder_;
  Image image_;  // a member, so that its memory is reused
};

}  // namespace penstock
