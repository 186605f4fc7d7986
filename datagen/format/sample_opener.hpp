// Removes the wrapping of a stored sample, so that a decoder of its codec can read it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "datagen/codec/gzip.hpp"
#include "datagen/format/form_reader.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The codec without the wrapping of the samples: "jpeg" for "jpeg.tfrecord.gz". `codec` is
// ManifestFacts::codec.
std::string_view payload_codec(std::string_view codec);

// Removes the wrapping of samples: gzip, TFRecord framing and tf.Example. The codec of the corpus says
// whether the samples have this wrapping. It reuses one buffer, which becomes as large as the largest record.
// Only one thread at a time may use it.
class SampleOpener {
 public:
  // `codec` is the codec of the corpus (ManifestFacts::codec). With "mixed", open() unwraps those samples
  // that begin like gzip. open() refuses a record of more than `max_record_bytes` bytes. Error: `unsupported`
  // if all samples are wrapped and the build lacks the decompressor.
  static Result<SampleOpener> make(std::string_view codec, uint64_t max_record_bytes = UINT64_MAX);
  // For a corpus, whose samples may also have forms. The manifest must outlive the opener.
  static Result<SampleOpener> make(const Manifest& manifest, uint64_t max_record_bytes = UINT64_MAX);

  // Whether a sample that begins with these bytes is wrapped.
  bool is_wrapped(std::span<const std::byte> beginning) const {
    return all_wrapped_ || (some_wrapped_ && begins_as_gzip(beginning));
  }

  // Returns the payload of a stored sample. If the sample is not wrapped, this is `stored` itself; so it is
  // for gzip data of something else in a "mixed" corpus. Otherwise the payload is valid until the next call.
  // Errors: `corrupt` if a checksum of gzip or TFRecord is wrong or the bytes are no tf.Example. `truncated`
  // if bytes are missing. `unsupported` if the record has more than `max_record_bytes` bytes. Messages about
  // the tf.Example give the offset in the inflated record.
  // Memory: never more than deflate can produce from `stored`.
  Result<std::span<const std::byte>> open(std::span<const std::byte> stored);
  // The same for sample number `sample` of the manifest: undoes its form first. More errors: those of
  // SampleUnpacker.
  Result<std::span<const std::byte>> open(uint64_t sample, std::span<const std::byte> stored) {
    if (!unpacker_) return open(stored);
    PENSTOCK_ASSIGN(const auto unpacked, unpacker_->open(sample, stored));
    return open(unpacked);
  }

 private:
  SampleOpener(bool all_wrapped, bool some_wrapped, uint64_t max_record_bytes)
      : all_wrapped_(all_wrapped), some_wrapped_(some_wrapped), max_record_bytes_(max_record_bytes) {}
  // Returns the record, or nothing if the sample is gzip data of something else and need not be wrapped.
  Result<std::optional<std::span<std::byte>>> inflate(std::span<const std::byte> stored);

  bool all_wrapped_;
  bool some_wrapped_;
  uint64_t max_record_bytes_;
  std::optional<StreamInflater> inflater_;
  Buffer record_;
  std::optional<SampleUnpacker> unpacker_;  // set if samples have forms
};

}  // namespace penstock
