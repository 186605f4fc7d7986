// JPEG in and out through libjpeg-turbo, for one thread each, with everything reused from picture to picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io_backends/base/result.hpp"

namespace penstock {

// Interleaved 8-bit RGB, rows top to bottom without padding: pixels[(y * width + x) * 3 + channel].
struct Image {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> pixels;
};

struct JpegHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int components = 0;
};

// One thread. Warnings of the library (premature end, extraneous bytes) count as `corrupt`: a picture that
// needs guessing is not what was stored. A picture above 1 Gi pixels is refused.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  Result<JpegHeader> header(std::span<const std::byte> jpeg);
  // Whole picture as RGB (greyscale is spread, CMYK and YCCK converted), into `out`, whose memory is reused.
  Result<void> decode(std::span<const std::byte> jpeg, Image& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One thread. 4:2:0, optimised for speed (fixed Huffman tables), no metadata: the same pixels give the same
// bytes.
class JpegEncoder {
 public:
  JpegEncoder();
  ~JpegEncoder();
  JpegEncoder(JpegEncoder&&) noexcept;
  JpegEncoder& operator=(JpegEncoder&&) noexcept;

  // quality 1..100. The bytes stay valid until the next call.
  Result<std::span<const std::byte>> encode(const Image& image, int quality);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
