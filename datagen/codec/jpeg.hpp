// Decodes JPEG with libjpeg-turbo. One thread for each decoder, which uses its memory again for each picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// 8-bit RGB, interleaved; rows from top to bottom without padding: pixels[(y * width + x) * 3 + channel].
struct Image {
  uint32_t width = 0;
  uint32_t height = 0;
  std::vector<uint8_t> pixels;
};

struct JpegHeader {
  uint32_t width = 0;
  uint32_t height = 0;
  int components = 0;
  unsigned restart_interval = 0;  // in coding units; 0: the whole picture is one interval
};

struct PicturePart {
  uint32_t left = 0;
  uint32_t top = 0;
  uint32_t width = 0;
  uint32_t height = 0;
};

// The decoder refuses pictures with more pixels. It also refuses a picture that claims more than 2048 pixels
// for each of its bytes. Arithmetic coding can reach more, so its pictures must obey that limit only from
// 2^22 pixels on.
inline constexpr uint64_t kMostJpegPixels = uint64_t{1} << 30;

// One thread. An error is `corrupt` and names the damage, or `exhausted` if memory ran out. Warnings of the
// library (premature end, extraneous bytes, bad codes) are `corrupt` as well: if the decoder must guess, the
// pixels are not the stored ones. Only header oddities that do not change a pixel are accepted.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  Result<JpegHeader> read_header(std::span<const std::byte> jpeg);

  // Decodes the whole picture to RGB into `out`; grey, CMYK and YCCK are converted. Uses the memory of `out`
  // again; after an error its content is undefined. `shrink` 1, 2, 4 or 8 divides both sides by it, rounded
  // up, and saves most of the inverse transform (IDCT).
  Result<void> decode(std::span<const std::byte> jpeg, Image& out, unsigned shrink = 1);

  // Decodes a part, with the same pixels as decode(). It skips most of the inverse transform outside of the
  // part, and does not decode rows below the part. So it does not find damage in those rows.
  // `invalid_argument` if the part is empty or not inside the picture.
  Result<void> decode_part(std::span<const std::byte> jpeg, const PicturePart& part, Image& out);

 private:
  struct Libjpeg;
  std::unique_ptr<Libjpeg> libjpeg_;
};

}  // namespace penstock
