// Encodes JPEG with libjpeg-turbo. Each thread needs an encoder of its own. An encoder reuses its memory for
// each picture.
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

// A picture in the form that JPEG codes: full-range YCbCr planes of JFIF, with colour at half resolution. A
// plane has padded_height() rows of luma, or half as many of colour. A row has stride() bytes of luma, or
// stride() / 2 of colour. Both sizes are whole units of 16x16 pixels. Pixels beyond width and height are
// coded but never shown.
struct YccImage {
  uint32_t width = 0;
  uint32_t height = 0;
  std::array<std::vector<uint8_t>, 3> planes;  // Y, Cb, Cr

  size_t stride() const { return (size_t{width} + 15) / 16 * 16; }
  size_t padded_height() const { return (size_t{height} + 15) / 16 * 16; }
  // Sets the size, and enlarges the planes if needed. Their content is then undefined. Their memory never
  // shrinks.
  void reshape(uint32_t new_width, uint32_t new_height);
};

// Makes baseline JPEGs with 4:2:0 and without metadata, as fast as possible (with fixed Huffman tables). The
// same pixels give the same bytes. Only one thread at a time may use it. `invalid_argument` if JPEG does not
// allow a size or a setting. The result of encode() is valid until the next call.
class JpegEncoder {
 public:
  JpegEncoder();
  ~JpegEncoder();
  JpegEncoder(JpegEncoder&&) noexcept;
  JpegEncoder& operator=(JpegEncoder&&) noexcept;

  // `quality` is 1 to 100, on the usual scale of libjpeg.
  Result<std::span<const std::byte>> encode(const Image& image, int quality);

  // `quantizer_percent`, 1 to 5000, scales the example quantizer tables of the JPEG standard: 20 is quality
  // 90, 100 is quality 50, 200 is quality 25. At high quality, its steps are finer than those of `quality`.
  // A restart interval begins after every `restart_rows` rows of 16 lines (0: never). Each interval can be
  // decoded without the intervals before it.
  Result<std::span<const std::byte>> encode(const YccImage& image, int quantizer_percent,
                                            unsigned restart_rows = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
