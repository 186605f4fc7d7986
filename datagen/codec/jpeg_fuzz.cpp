// Fuzz target: the input is a JPEG. Small pictures are decoded whole, shrunk and in part; a part has the
// pixels of the whole. Larger ones must not claim more pixels than their bytes may contain.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "datagen/codec/jpeg.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kMostPixels = 1 << 18;
  constexpr uint64_t kMostUnbounded = 1 << 22;
  static penstock::JpegDecoder decoder;
  static penstock::Image image;
  const auto jpeg = std::as_bytes(std::span(data, size));
  const auto header = decoder.read_header(jpeg);
  if (!header.ok()) {
    if (decoder.decode(jpeg, image).ok()) std::abort();
    return 0;
  }
  const uint64_t pixels = uint64_t{header->width} * header->height;
  if (pixels > kMostUnbounded && pixels / 2048 > size) std::abort();
  if (pixels > kMostPixels) return 0;
  for (const unsigned shrink : {8U, 1U}) {
    if (!decoder.decode(jpeg, image, shrink).ok()) continue;
    const bool right = image.width == (header->width + shrink - 1) / shrink &&
                       image.height == (header->height + shrink - 1) / shrink &&
                       image.pixels.size() == size_t{3} * image.width * image.height;
    if (!right) std::abort();
  }
  const penstock::PicturePart part{header->width / 3, header->height / 3, (header->width + 1) / 2,
                                   (header->height + 1) / 2};
  static penstock::Image cut;
  if (!decoder.decode_part(jpeg, part, cut).ok()) return 0;
  if (cut.pixels.size() != size_t{3} * part.width * part.height) std::abort();
  if (!decoder.decode(jpeg, image).ok()) return 0;
  for (size_t y = 0; y < part.height; ++y) {
    const auto row = cut.pixels.begin() + ptrdiff_t(3 * y * part.width);
    const auto whole = image.pixels.begin() + ptrdiff_t(3 * ((part.top + y) * image.width + part.left));
    if (!std::equal(row, row + ptrdiff_t(3) * part.width, whole)) std::abort();
  }
  return 0;
}
