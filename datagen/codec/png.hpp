// Decodes and encodes PNG with libpng. Only one thread at a time may use an object. In a build without libpng
// every call fails with `unsupported` and says why.
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

// Decodes any PNG to RGB into `out`: grey and palettes are converted, 16 bits become 8, transparency is
// dropped. Reuses the memory of `out`; after an error its content is undefined. The error `corrupt` names the
// damage. A picture is also `corrupt` if it claims more pixels than kMostJpegPixels or than its bytes can
// contain. `exhausted` if memory ran out.
Result<void> decode_png(std::span<const std::byte> png, Image& out);

// Whether `bytes` begin with the signature of PNG.
bool is_png(std::span<const std::byte> bytes);
// True if `picture` begins like a PNG, false if it begins like a JPEG. `corrupt` if it begins like neither.
Result<bool> is_png_not_jpeg(std::span<const std::byte> picture);

// Decodes JPEG and PNG, which it distinguishes by their first bytes. Results and errors are those of
// JpegDecoder::decode() and decode_png(). Only one thread at a time may use it.
class PictureDecoder {
 public:
  Result<void> decode(std::span<const std::byte> picture, Image& out);

 private:
  JpegDecoder jpeg_;
};

// Makes PNGs with eight bits a channel, libpng's default filters and no metadata. The same pixels give the
// same bytes (for one version of libpng and zlib). Only one thread at a time may use it. The result is valid
// until the next call.
class PngEncoder {
 public:
  Result<std::span<const std::byte>> encode(const Image& image);

 private:
  std::vector<std::byte> out_;
};

}  // namespace penstock
