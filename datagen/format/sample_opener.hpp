// From a sample as it is stored to what a decoder of its codec takes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "datagen/codec/gzip.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// "jpeg" of "jpeg.tfrecord.gz": the codec (ManifestFacts::codec) without what samples are wrapped in.
std::string_view payload_codec(std::string_view codec);

// Undoes what Format::wrapping() says: gzip, TFRecord's framing, tf.Example. Its memory, as large as the
// largest record, is reused. One thread.
class SampleOpener {
 public:
  // For samples of that codec, of which no record may be larger than `most` bytes. `unsupported` where they
  // are compressed by what the build lacks. Of a "mixed" corpus those are opened that begin as gzip.
  static Result<SampleOpener> make(std::string_view codec, std::uint64_t most = UINT64_MAX);

  // Whether a sample that begins like this is wrapped at all.
  bool wraps(std::span<const std::byte> beginning) const {
    return all_ || (some_ && begins_as_gzip(beginning));
  }

  // The payload: `stored` itself where nothing is around it, else valid until the next call. `corrupt` where
  // a checksum of gzip or of TFRecord is wrong or it is no tf.Example, `truncated` where bytes are missing;
  // they say where in the sample. Takes no more memory than deflate can make of that many bytes.
  Result<std::span<const std::byte>> open(std::span<const std::byte> stored);

 private:
  SampleOpener(bool all, bool some, std::uint64_t most) : all_(all), some_(some), most_(most) {}
  Result<std::span<std::byte>> inflate(std::span<const std::byte> stored);

  bool all_;
  bool some_;
  std::uint64_t most_;
  std::optional<GzipInflater> inflater_;
  Buffer record_;
};

}  // namespace penstock
