#include "datagen/codec/jpeg_encoder.hpp"

#include <jerror.h>

#include <algorithm>
#include <new>

#include "datagen/codec/jpeg_guard.hpp"

namespace penstock {
namespace {

// The most bytes that one pixel takes when it is coded. A coefficient takes at most 26 bits: 16 for the
// longest code and ten for the value. With 4:2:0, a pixel has 1.5 coefficients, so it takes 39 bits. The
// other 9 bits of the 6 bytes are more than enough for the zeros that JPEG requires after bytes of 0xFF.
constexpr size_t kMostBytesPerPixel = 6;
constexpr size_t kMostHeaderBytes = 2048;

}  // namespace

void YccImage::reshape(uint32_t new_width, uint32_t new_height) {
  width = new_width;
  height = new_height;
  const size_t luma_bytes = stride() * padded_height();
  if (planes[0].size() < luma_bytes) planes[0].resize(luma_bytes);
  for (size_t i = 1; i < 3; ++i)
    if (planes[i].size() < luma_bytes / 4) planes[i].resize(luma_bytes / 4);
}

struct JpegEncoder::State {
  JpegGuard guard;
  jpeg_compress_struct codec{};
  jpeg_destination_mgr sink{};
  bool is_created = false;
  // The output buffer. It is at least as large as the largest JPEG that the current picture can give.
  std::vector<uint8_t> out;

  State() {
    set_up(guard);
    codec.err = &guard.manager;
    codec.client_data = &guard;
    is_created = create();
    sink.init_destination = [](j_compress_ptr) {};
    sink.term_destination = [](j_compress_ptr) {};
    sink.empty_output_buffer = [](j_compress_ptr full) -> boolean {
      ERREXIT(full, JERR_CANT_SUSPEND);
      return FALSE;
    };
    codec.dest = &sink;
  }
  ~State() { jpeg_destroy_compress(&codec); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  bool create() {
    if (setjmp(guard.jump_target) != 0) return false;
    jpeg_create_compress(&codec);
    return true;
  }

  Result<void> prepare(uint32_t width, uint32_t height) {
    if (!is_created) return codec_error(guard, Errc::internal, "set up the JPEG encoder");
    const std::string size = std::to_string(width) + "x" + std::to_string(height) + " pixels";
    if (width == 0 || height == 0 || width > JPEG_MAX_DIMENSION || height > JPEG_MAX_DIMENSION ||
        uint64_t{width} * height > kMostJpegPixels)
      return make_error(Errc::invalid_argument,
                        "cannot encode a JPEG of " + size +
                            ": a side must have 1 to 65500 pixels, and a picture at most 2^30");
    const size_t max_bytes =
        (size_t{width} + 15) / 16 * 16 * ((size_t{height} + 15) / 16 * 16) * kMostBytesPerPixel +
        kMostHeaderBytes;
    try {
      if (out.size() < max_bytes) out.resize(max_bytes);
    } catch (const std::bad_alloc&) {
      return make_error(Errc::exhausted, "no memory to encode a JPEG of " + size);
    }
    sink.next_output_byte = out.data();
    sink.free_in_buffer = out.size();
    codec.image_width = width;
    codec.image_height = height;
    codec.input_components = 3;
    return {};
  }

  // Sets the format of the input and the default settings. jpeg_set_defaults() selects 4:2:0 for YCbCr.
  void set_input_format(J_COLOR_SPACE space, bool are_planes) {
    codec.in_color_space = space;
    jpeg_set_defaults(&codec);
    codec.raw_data_in = are_planes ? TRUE : FALSE;
  }

  bool write_rgb(const uint8_t* pixels, int quality) {
    if (setjmp(guard.jump_target) != 0) return false;
    set_input_format(JCS_RGB, false);
    jpeg_set_quality(&codec, quality, TRUE);
    jpeg_start_compress(&codec, TRUE);
    const size_t stride = size_t{codec.image_width} * 3;
    while (codec.next_scanline < codec.image_height) {
      JSAMPROW rows[kJpegRowsAtOnce];
      const JDIMENSION row_count = std::min(kJpegRowsAtOnce, codec.image_height - codec.next_scanline);
      // libjpeg takes rows through non-const pointers but does not write to them.
      for (JDIMENSION i = 0; i < row_count; ++i)
        rows[i] = const_cast<uint8_t*>(pixels) + (codec.next_scanline + i) * stride;
      jpeg_write_scanlines(&codec, rows, row_count);
    }
    jpeg_finish_compress(&codec);
    return true;
  }

  bool write_planes(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, size_t stride,
                    int quantizer_percent, unsigned restart_rows) {
    if (setjmp(guard.jump_target) != 0) return false;
    set_input_format(JCS_YCbCr, true);
    jpeg_set_linear_quality(&codec, quantizer_percent, TRUE);
    codec.restart_in_rows = int(restart_rows);
    jpeg_start_compress(&codec, TRUE);
    while (codec.next_scanline < codec.image_height) {
      JSAMPROW luma[16];
      JSAMPROW blue[8];
      JSAMPROW red[8];
      const size_t top = codec.next_scanline;
      for (size_t i = 0; i < 16; ++i) luma[i] = const_cast<uint8_t*>(y) + (top + i) * stride;
      for (size_t i = 0; i < 8; ++i) {
        blue[i] = const_cast<uint8_t*>(cb) + (top / 2 + i) * (stride / 2);
        red[i] = const_cast<uint8_t*>(cr) + (top / 2 + i) * (stride / 2);
      }
      JSAMPARRAY planes[3] = {luma, blue, red};
      jpeg_write_raw_data(&codec, planes, 16);
    }
    jpeg_finish_compress(&codec);
    return true;
  }

  Result<std::span<const std::byte>> finish(bool written) {
    if (!written) {
      jpeg_abort_compress(&codec);
      return codec_error(guard, Errc::internal, "encode JPEG");
    }
    return std::as_bytes(std::span<const uint8_t>(out).first(out.size() - sink.free_in_buffer));
  }
};

JpegEncoder::JpegEncoder() : state_(std::make_unique<State>()) {}
JpegEncoder::~JpegEncoder() = default;
JpegEncoder::JpegEncoder(JpegEncoder&&) noexcept = default;
JpegEncoder& JpegEncoder::operator=(JpegEncoder&&) noexcept = default;

Result<std::span<const std::byte>> JpegEncoder::encode(const Image& image, int quality) {
  if (quality < 1 || quality > 100)
    return make_error(Errc::invalid_argument,
                      "JPEG quality must be 1 to 100, not " + std::to_string(quality));
  if (image.pixels.size() < size_t{image.width} * image.height * 3)
    return make_error(Errc::invalid_argument, "the picture has fewer pixels than width times height");
  PENSTOCK_TRY(state_->prepare(image.width, image.height));
  return state_->finish(state_->write_rgb(image.pixels.data(), quality));
}

Result<std::span<const std::byte>> JpegEncoder::encode(const YccImage& image, int quantizer_percent,
                                                       unsigned restart_rows) {
  if (quantizer_percent < 1 || quantizer_percent > 5000)
    return make_error(Errc::invalid_argument, "the JPEG quantizer scale must be 1 to 5000 percent, not " +
                                                  std::to_string(quantizer_percent));
  const size_t luma_bytes = image.stride() * image.padded_height();
  if (image.planes[0].size() < luma_bytes || image.planes[1].size() < luma_bytes / 4 ||
      image.planes[2].size() < luma_bytes / 4)
    return make_error(Errc::invalid_argument, "the picture has fewer pixels than width times height");
  PENSTOCK_TRY(state_->prepare(image.width, image.height));
  return state_->finish(state_->write_planes(image.planes[0].data(), image.planes[1].data(),
                                             image.planes[2].data(), image.stride(), quantizer_percent,
                                             restart_rows));
}

}  // namespace penstock
