// JPEG in and out through libjpeg-turbo, for one thread each, with everything reused from picture to picture.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// Interleaved 8-bit RGB, rows top to bottom without padding: pixels[(y * width + x) * 3 + channel].
struct Image {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> pixels;
};

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

struct JpegHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int components = 0;
  unsigned restart_interval = 0;  // in coding units; 0: the picture is one interval
};

// A rectangle of a picture.
struct PicturePart {
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

// A picture above this is refused, and so is one that claims more pixels than its bytes can hold: 2048 a
// byte. Arithmetic coding can hold more; its pictures are held to that from 2^22 pixels on.
inline constexpr std::uint64_t kMostJpegPixels = std::uint64_t{1} << 30;

// One thread. Errors are `corrupt` and say what is wrong with the picture; `exhausted` when memory ran out.
// Warnings of the library (premature end, extraneous bytes, bad codes) count as `corrupt`: a picture that
// needs guessing is not what was stored. Only oddities of the header that change no pixel are let pass.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  Result<JpegHeader> header(std::span<const std::byte> jpeg);

  // Whole picture as RGB (greyscale is spread, CMYK and YCCK converted), into `out`, whose memory is reused;
  // undefined after an error. `shrink` 1, 2, 4 or 8 decodes to that fraction of each side, rounded up, which
  // spares most of the inverse transform.
  Result<void> decode(std::span<const std::byte> jpeg, Image& out, unsigned shrink = 1);

  // The same pixels as decode() has in that part, sparing most of the inverse transform outside of it and all
  // that is coded below it, where damage then goes unnoticed. `invalid_argument` for a part that is empty or
  // is not in the picture.
  Result<void> decode_part(std::span<const std::byte> jpeg, const PicturePart& part, Image& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
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
