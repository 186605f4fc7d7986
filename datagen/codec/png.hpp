// Decodes and encodes PNG with libpng. In a build without
// libpng, decoding and encoding a PNG fails with `unsupported` and says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "datagen/codec/jpeg.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Whether PNG can be used: success, or `unsupported` in a build without libpng.
Result<void> png_available();

// Decodes any PNG to RGB into `out`. Converts grey and palettes, reduces 16 bits to 8, and drops
// transparency. Reuses the memory of `out`; after an error its content is undefined.
// Errors: `corrupt` says what is damaged. It is also the error for a picture that claims more pixels than
// kMostJpegPixels, or more than its bytes can contain. `exhausted` if memory ran out.
Result<void> decode_png(std::span<const std::byte> png, Image& out);

// Whether `bytes` begin with the signature of PNG.
bool is_png(std::span<const std::byte> bytes);
// True if `picture` begins like a PNG, false if it begins like a JPEG. If it begins like neither, the error
// is `corrupt`.
Result<bool> is_png_not_jpeg(std::span<const std::byte> picture);

// Decodes JPEG and PNG; the first bytes of a picture decide which decoder is used. Results and errors are
// those of JpegDecoder::decode() and decode_png(). Only one thread at a time may use it.
class PictureDecoder {
 public:
  Result<void> decode(std::span<const std::byte> picture, Image& out);

 private:
  JpegDecoder jpeg_;
};

// Makes a PNG with eight bits a channel, libpng's default filters and no metadata, and returns it: the
// beginning of `out`, whose memory is reused. The same pixels give the same bytes (for one version of libpng
// and zlib).
Result<std::span<const std::byte>> encode_png(const Image& image, std::vector<std::byte>& out);

}  // namespace penstock
