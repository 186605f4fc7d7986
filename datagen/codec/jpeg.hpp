// Decodes JPEG with libjpeg-turbo. Each thread needs a decoder of its own. A decoder reuses its memory for
// each picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "datagen/codec/picture_warnings.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// A picture in 8-bit RGB. Rows go from top to bottom without padding: pixels[(y * width + x) * 3 + channel].
struct Image {
  uint32_t width = 0;
  uint32_t height = 0;
  std::vector<uint8_t> pixels;
  PictureWarnings warnings{};  // what the decoder found wrong in the picture
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

// JpegDecoder refuses pictures with more pixels than this.
// It also refuses pictures that claim more than 2048 pixels for each byte of their file. Arithmetic coding
// can really reach more, so it refuses an arithmetic-coded picture for this reason only if the picture has
// more than 2^22 pixels.
inline constexpr uint64_t kMostJpegPixels = uint64_t{1} << 30;

// Decodes pictures. Only one thread at a time may use it.
// A picture that Pillow, TensorFlow or libjpeg decodes is decoded here too, to the same pixels; what is wrong
// in it is in Image::warnings. Two warnings of libjpeg are ignored, because they do not change pixels: an
// unknown version of JFIF, and a tag of sequential coding on a picture that is not.
// Errors: `corrupt` says what is damaged; `exhausted` means that memory ran out. Also `corrupt` is a picture
// whose bytes end before its last pixel. If only the end marker is missing, that is a warning.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  Result<JpegHeader> read_header(std::span<const std::byte> jpeg);

  // Decodes the whole picture to RGB into `out`; grey, CMYK and YCCK are converted. CMYK counts as inverted
  // (255 means no ink), as Adobe's programs, Pillow and djpeg take it, also without Adobe's marker. Reuses
  // the memory of `out`; after an error its content is undefined. `shrink` is 1, 2, 4 or 8: the result has
  // width and height divided by it, rounded up. A small result saves most of the inverse transform (IDCT).
  Result<void> decode(std::span<const std::byte> jpeg, Image& out, unsigned shrink = 1);

  // Decodes a part of the picture, with the same pixels as decode(). It skips most of the inverse transform
  // outside of the part. It does not decode the rows below the part, so it has no errors and warnings of what
  // is there. (All scans of a progressive picture are read, so it has all their warnings.) `invalid_argument`
  // if the part is empty or not inside the picture.
  Result<void> decode_part(std::span<const std::byte> jpeg, const PicturePart& part, Image& out);

 private:
  struct Libjpeg;
  std::unique_ptr<Libjpeg> libjpeg_;
};

}  // namespace penstock
