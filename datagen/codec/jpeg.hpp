// JPEG in through libjpeg-turbo, for one thread, with everything reused from picture to picture.
#pragma once

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

}  // namespace penstock
