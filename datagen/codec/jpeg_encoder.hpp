// JPEG out through libjpeg-turbo, for one thread, with everything reused from picture to picture.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "datagen/codec/jpeg.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The same picture as the coder sees it: full-range YCbCr planes of JFIF, colour at half resolution. Every
// plane reaches to whole 16x16 units: luma rows have stride(), colour rows stride() / 2, and the rows up to
// padded_height() are there; what lies beyond width and height is coded but never shown.
struct YccImage {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::array<std::vector<std::uint8_t>, 3> planes;  // Y, Cb, Cr

  std::size_t stride() const { return (std::size_t{width} + 15) / 16 * 16; }
  std::size_t padded_height() const { return (std::size_t{height} + 15) / 16 * 16; }
  // Sets the size and makes the planes large enough; content undefined. Keeps memory.
  void reshape(std::uint32_t new_width, std::uint32_t new_height);
};

// One thread. Baseline 4:2:0, optimised for speed (fixed Huffman tables), no metadata: the same pixels give
// the same bytes. `invalid_argument` for a size or a setting that JPEG does not have. What is returned stays
// valid until the next call.
class JpegEncoder {
 public:
  JpegEncoder();
  ~JpegEncoder();
  JpegEncoder(JpegEncoder&&) noexcept;
  JpegEncoder& operator=(JpegEncoder&&) noexcept;

  // quality 1..100, as everybody counts it.
  Result<std::span<const std::byte>> encode(const Image& image, int quality);

  // `quantizer_percent` scales the standard's example tables directly (quality 50 is 100, quality 90 is 20,
  // quality 25 is 200): finer than quality near the top. 1..5000. Every `restart_rows` rows of 16 lines (0:
  // never) a restart interval begins, which can be decoded without what stands before it.
  Result<std::span<const std::byte>> encode(const YccImage& image, int quantizer_percent,
                                            unsigned restart_rows = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
