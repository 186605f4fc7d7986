// Fuzz target: the input is a PNG. Decodes small pictures. Also decodes pictures that claim more pixels than
// deflate can make of their bytes; this must fail.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "datagen/codec/png.hpp"

namespace {

// Reads the width or height at `at`: big endian, after the signature and the head of the first chunk.
uint64_t side_at(const uint8_t* data, size_t at) {
  uint64_t side = 0;
  for (size_t i = 0; i < 4; ++i) side = side << 8U | data[at + i];
  return side;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kMostPixels = 1 << 18;
  constexpr size_t kWidthAt = 16;
  constexpr uint64_t kMostPixelsPerByte = 8 * 1032;
  static penstock::Image image;
  const uint64_t pixels = size < kWidthAt + 8 ? 0 : side_at(data, kWidthAt) * side_at(data, kWidthAt + 4);
  const bool impossible = pixels / kMostPixelsPerByte > size;
  if (pixels > kMostPixels && !impossible) return 0;
  const auto decoded = penstock::decode_png(std::as_bytes(std::span(data, size)), image);
  if (decoded.ok() && impossible) std::abort();
  if (decoded.ok() && image.pixels.size() != size_t{3} * image.width * image.height) std::abort();
  return 0;
}
