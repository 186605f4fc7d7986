// PNG in and out through libpng, for one thread each. Where the build lacks libpng every call is
// `unsupported` and says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "datagen/codec/jpeg.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Nothing, or `unsupported`.
Result<void> png_available();

// Any PNG as RGB (grey is spread, palettes are looked up, sixteen bits are cut to eight, transparency is left
// out) into `out`, whose memory is reused; undefined after an error. `corrupt` says what is wrong with the
// picture, also where it claims more pixels than kMostJpegPixels or than its bytes can hold; `exhausted` when
// memory ran out.
Result<void> decode_png(std::span<const std::byte> png, Image& out);

bool is_png(std::span<const std::byte> bytes);  // by how they begin
// Whether it is for decode_png rather than for a JpegDecoder; `corrupt` where it begins as neither does.
Result<bool> is_png_not_jpeg(std::span<const std::byte> picture);

// JPEG and PNG, told apart by their first bytes, as JpegDecoder::decode and decode_png say. One thread.
class PictureDecoder {
 public:
  Result<void> decode(std::span<const std::byte> picture, Image& out);

 private:
  JpegDecoder jpeg_;
};

// One thread. Eight bits a channel, libpng's own choice of filters, no metadata: the same pixels give the
// same bytes (for one version of libpng and zlib). What is returned stays valid until the next call.
class PngEncoder {
 public:
  Result<std::span<const std::byte>> encode(const Image& image);

 private:
  std::vector<std::byte> out_;
};

}  // namespace penstock
