#include "datagen/codec/jpeg.hpp"

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE and size_t before it
#include <new>
#include <string>

namespace penstock {
namespace {

constexpr int kMostScans = 500;
// A Huffman-coded picture spends at least one bit on each block of its finest component, which covers at
// least a quarter of the blocks when two components share being finest.
constexpr std::uint64_t kMostPixelsPerByte = 2048;  // 8 bits, 64 pixels, a quarter
// No such bound holds for arithmetic coding, which spends next to nothing on what is expected: a small
// picture is taken at its word, a larger one is held to the bound of Huffman's.
constexpr std::uint64_t kMostUnboundedPixels = std::uint64_t{1} << 22;
// A coefficient takes 26 bits at most (the longest fixed code and ten bits of value), a 4:2:0 pixel has 1.5
// of them, and the stuffing behind bytes of 0xff adds little.
constexpr std::size_t kMostBytesPerPixel = 6;
constexpr std::size_t kMostHeaderBytes = 2048;
constexpr JDIMENSION kRowsAtOnce = 16;
// libjpeg-turbo stores a line that begins at a multiple of its vectors' size past the caches. That is right
// for pixels that are read late. A part's lines are copied at once, and would come from memory (a tenth of
// the whole time).
constexpr std::size_t kOffAlignment = 1;

// libjpeg reports by calling back and expects not to be returned to. Between setjmp and longjmp no object
// with a destructor may come to life: each Guarded step below is one function of plain C data.
struct Guard {
  jpeg_error_mgr manager{};
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = {};
  int code = 0;
};

[[noreturn]] void give_up(j_common_ptr codec) {
  Guard* guard = static_cast<Guard*>(codec->client_data);
  guard->code = codec->err->msg_code;
  (*codec->err->format_message)(codec, guard->message);
  std::longjmp(guard->escape, 1);
}

void on_message(j_common_ptr codec, int level) {
  if (level >= 0) return;
  const int code = codec->err->msg_code;
  if (code == JWRN_JFIF_MAJOR || code == JWRN_NOT_SEQUENTIAL) return;
  give_up(codec);
}

void stay_silent(j_common_ptr /*codec*/) {}

void stop_endless_scans(j_common_ptr codec) {
  // Only decoders get this callback, so the cast back is to what it really is.
  j_decompress_ptr decoder = reinterpret_cast<j_decompress_ptr>(codec);
  if (decoder->input_scan_number > kMostScans) {
    Guard* guard = static_cast<Guard*>(codec->client_data);
    guard->code = JERR_BAD_PROGRESSION;
    std::snprintf(guard->message, sizeof guard->message, "more than %d scans", kMostScans);
    std::longjmp(guard->escape, 1);
  }
}

void set_up(Guard& guard) {
  jpeg_std_error(&guard.manager);
  guard.manager.error_exit = give_up;
  guard.manager.emit_message = on_message;
  guard.manager.output_message = stay_silent;
}

// `otherwise`: what every failure but lack of memory means.
Error codec_error(const Guard& guard, Errc otherwise, const std::string& doing) {
  return make_error(guard.code == JERR_OUT_OF_MEMORY ? Errc::exhausted : otherwise,
                    "cannot " + doing + ": " + guard.message);
}

std::string decode_jpeg_of(std::size_t bytes) {
  return "decode JPEG of " + std::to_string(bytes) + " bytes";
}

}  // namespace

void YccImage::reshape(std::uint32_t new_width, std::uint32_t new_height) {
  width = new_width;
  height = new_height;
  const std::size_t luma = stride() * padded_height();
  if (planes[0].size() < luma) planes[0].resize(luma);
  for (std::size_t i = 1; i < 3; ++i)
    if (planes[i].size() < luma / 4) planes[i].resize(luma / 4);
}

struct JpegDecoder::State {
  Guard guard;
  jpeg_decompress_struct codec{};
  jpeg_progress_mgr progress{};
  bool alive = false;
  std::vector<std::uint8_t> line;  // one of CMYK, or of what is cut

  State() {
    set_up(guard);
    codec.err = &guard.manager;
    codec.client_data = &guard;
    alive = create();
    progress.progress_monitor = stop_endless_scans;
    codec.progress = &progress;
  }
  ~State() { jpeg_destroy_decompress(&codec); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  bool create() {
    if (setjmp(guard.escape) != 0) return false;
    jpeg_create_decompress(&codec);
    return true;
  }

  bool read_header(const unsigned char* data, unsigned long size) {
    if (setjmp(guard.escape) != 0) return false;
    jpeg_mem_src(&codec, data, size);
    jpeg_read_header(&codec, TRUE);
    return true;
  }

  bool start(unsigned shrink) {
    if (setjmp(guard.escape) != 0) return false;
    const bool ink = codec.jpeg_color_space == JCS_CMYK || codec.jpeg_color_space == JCS_YCCK;
    codec.out_color_space = ink ? JCS_CMYK : JCS_RGB;
    codec.scale_num = 1;
    codec.scale_denom = shrink;
    jpeg_calc_output_dimensions(&codec);
    return true;
  }

  bool read_rows(std::uint8_t* pixels, std::uint8_t* ink_row) {
    if (setjmp(guard.escape) != 0) return false;
    jpeg_start_decompress(&codec);
    const std::size_t stride = std::size_t{codec.output_width} * 3;
    while (codec.output_scanline < codec.output_height) {
      std::uint8_t* row = pixels + codec.output_scanline * stride;
      if (ink_row != nullptr) {
        jpeg_read_scanlines(&codec, &ink_row, 1);
        print(ink_row, row, codec.output_width);
        continue;
      }
      JSAMPROW rows[kRowsAtOnce];
      const JDIMENSION wanted = std::min(kRowsAtOnce, codec.output_height - codec.output_scanline);
      for (JDIMENSION i = 0; i < wanted; ++i) rows[i] = row + i * stride;
      jpeg_read_scanlines(&codec, rows, wanted);
    }
    jpeg_finish_decompress(&codec);
    return true;
  }

  // `row` holds one of the whole width. Colour at half resolution is spread with the help of its neighbours,
  // so that columns at the edge of what is decoded may look otherwise: one coding unit more is, on each side.
  bool read_part(const PicturePart& part, std::uint8_t* row, std::uint8_t* pixels) {
    if (setjmp(guard.escape) != 0) return false;
    jpeg_start_decompress(&codec);
    const auto unit = static_cast<JDIMENSION>(codec.max_h_samp_factor * DCTSIZE);
    JDIMENSION left = part.left - std::min(part.left, unit);
    JDIMENSION width = std::min(codec.output_width, part.left + part.width + unit) - left;
    jpeg_crop_scanline(&codec, &left, &width);
    jpeg_skip_scanlines(&codec, part.top);
    const bool ink = codec.out_color_space == JCS_CMYK;
    const std::uint8_t* const first = row + std::size_t{part.left - left} * (ink ? 4 : 3);
    for (std::size_t y = 0; y < part.height; ++y) {
      JSAMPROW rows[] = {row};
      jpeg_read_scanlines(&codec, rows, 1);
      std::uint8_t* const to = pixels + y * part.width * 3;
      if (ink)
        print(first, to, part.width);
      else
        std::copy_n(first, std::size_t{part.width} * 3, to);
    }
    jpeg_abort_decompress(&codec);
    return true;
  }

  // Adobe's programs store ink upside down (255 is no ink), and say so by their marker.
  void print(const std::uint8_t* ink, std::uint8_t* rgb, JDIMENSION width) const {
    const unsigned flip = codec.saw_Adobe_marker != 0 ? 0 : 255;
    for (JDIMENSION x = 0; x < width; ++x, ink += 4, rgb += 3)
      for (std::size_t i = 0; i < 3; ++i)
        rgb[i] = static_cast<std::uint8_t>((ink[i] ^ flip) * (ink[3] ^ flip) / 255);
  }

  Result<void> open(std::span<const std::byte> jpeg) {
    if (!alive) return codec_error(guard, Errc::internal, "set up the JPEG decoder");
    if (!read_header(reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size())) {
      jpeg_abort_decompress(&codec);
      return codec_error(guard, Errc::corrupt, decode_jpeg_of(jpeg.size()));
    }
    const std::uint64_t pixels = std::uint64_t{codec.image_width} * codec.image_height;
    const bool too_large = pixels > kMostJpegPixels;
    const bool arithmetic = codec.arith_code != 0;
    const bool impossible =
        pixels / kMostPixelsPerByte > jpeg.size() && (!arithmetic || pixels > kMostUnboundedPixels);
    if (!too_large && !impossible) return {};
    const std::string size =
        std::to_string(codec.image_width) + "x" + std::to_string(codec.image_height) + " pixels";
    jpeg_abort_decompress(&codec);
    return make_error(Errc::corrupt, "cannot " + decode_jpeg_of(jpeg.size()) +
                                         (too_large ? ": " + size + " are above the limit of 2^30"
                                                    : ": it claims " + size + ", more than " +
                                                          (arithmetic ? "so few bytes are trusted to hold"
                                                                      : "its bytes can hold")));
  }
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {}
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

Result<JpegHeader> JpegDecoder::header(std::span<const std::byte> jpeg) {
  PENSTOCK_TRY(state_->open(jpeg));
  const JpegHeader header{state_->codec.image_width, state_->codec.image_height, state_->codec.num_components,
                          state_->codec.restart_interval};
  jpeg_abort_decompress(&state_->codec);
  return header;
}

Result<void> JpegDecoder::decode(std::span<const std::byte> jpeg, Image& out, unsigned shrink) {
  if (shrink != 1 && shrink != 2 && shrink != 4 && shrink != 8)
    return make_error(Errc::invalid_argument, "a JPEG can be shrunk by 1, 2, 4 or 8 while decoding, not by " +
                                                  std::to_string(shrink));
  PENSTOCK_TRY(state_->open(jpeg));
  jpeg_decompress_struct& codec = state_->codec;
  bool whole = state_->start(shrink);
  if (whole) {
    std::uint8_t* ink_row = nullptr;
    try {
      out.width = codec.output_width;
      out.height = codec.output_height;
      out.pixels.resize(std::size_t{out.width} * out.height * 3);
      if (codec.out_color_space == JCS_CMYK) {
        state_->line.resize(std::size_t{out.width} * 4);
        ink_row = state_->line.data();
      }
    } catch (const std::bad_alloc&) {
      jpeg_abort_decompress(&codec);
      return make_error(Errc::exhausted, "no memory for a picture of " + std::to_string(codec.image_width) +
                                             "x" + std::to_string(codec.image_height) + " pixels");
    }
    whole = state_->read_rows(out.pixels.data(), ink_row);
  }
  if (whole) return {};
  jpeg_abort_decompress(&codec);
  return codec_error(state_->guard, Errc::corrupt, decode_jpeg_of(jpeg.size()));
}

Result<void> JpegDecoder::decode_part(std::span<const std::byte> jpeg, const PicturePart& part, Image& out) {
  PENSTOCK_TRY(state_->open(jpeg));
  jpeg_decompress_struct& codec = state_->codec;
  const auto lies_within = [](std::uint64_t from, std::uint64_t length, std::uint64_t all) {
    return length > 0 && from + length <= all;
  };
  if (!lies_within(part.left, part.width, codec.image_width) ||
      !lies_within(part.top, part.height, codec.image_height)) {
    jpeg_abort_decompress(&codec);
    return make_error(Errc::invalid_argument, "no part of a picture of " + std::to_string(codec.image_width) +
                                                  "x" + std::to_string(codec.image_height) +
                                                  " pixels: " + std::to_string(part.width) + "x" +
                                                  std::to_string(part.height) + " at " +
                                                  std::to_string(part.left) + "," + std::to_string(part.top));
  }
  try {
    out.width = part.width;
    out.height = part.height;
    out.pixels.resize(std::size_t{part.width} * part.height * 3);
    state_->line.resize(std::size_t{codec.image_width} * 4 + kOffAlignment);
  } catch (const std::bad_alloc&) {
    jpeg_abort_decompress(&codec);
    return make_error(Errc::exhausted, "no memory for a picture of " + std::to_string(part.width) + "x" +
                                           std::to_string(part.height) + " pixels");
  }
  if (state_->start(1) && state_->read_part(part, state_->line.data() + kOffAlignment, out.pixels.data()))
    return {};
  jpeg_abort_decompress(&codec);
  return codec_error(state_->guard, Errc::corrupt, decode_jpeg_of(jpeg.size()));
}

struct JpegEncoder::State {
  Guard guard;
  jpeg_compress_struct codec{};
  jpeg_destination_mgr sink{};
  bool alive = false;
  std::vector<std::uint8_t> out;  // never smaller than the largest possible result of the picture at hand

  State() {
    set_up(guard);
    codec.err = &guard.manager;
    codec.client_data = &guard;
    alive = create();
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
    if (setjmp(guard.escape) != 0) return false;
    jpeg_create_compress(&codec);
    return true;
  }

  Result<void> prepare(std::uint32_t width, std::uint32_t height) {
    if (!alive) return codec_error(guard, Errc::internal, "set up the JPEG encoder");
    const std::string size = std::to_string(width) + "x" + std::to_string(height) + " pixels";
    if (width == 0 || height == 0 || width > JPEG_MAX_DIMENSION || height > JPEG_MAX_DIMENSION ||
        std::uint64_t{width} * height > kMostJpegPixels)
      return make_error(Errc::invalid_argument, "cannot encode a JPEG of " + size);
    const std::size_t most =
        (std::size_t{width} + 15) / 16 * 16 * ((std::size_t{height} + 15) / 16 * 16) * kMostBytesPerPixel +
        kMostHeaderBytes;
    try {
      if (out.size() < most) out.resize(most);
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

  // jpeg_set_defaults chooses 4:2:0 for YCbCr.
  void begin(J_COLOR_SPACE space, bool planes) {
    codec.in_color_space = space;
    jpeg_set_defaults(&codec);
    codec.raw_data_in = planes ? TRUE : FALSE;
  }

  bool write_rgb(const std::uint8_t* pixels, int quality) {
    if (setjmp(guard.escape) != 0) return false;
    begin(JCS_RGB, false);
    jpeg_set_quality(&codec, quality, TRUE);
    jpeg_start_compress(&codec, TRUE);
    const std::size_t stride = std::size_t{codec.image_width} * 3;
    while (codec.next_scanline < codec.image_height) {
      JSAMPROW rows[kRowsAtOnce];
      const JDIMENSION wanted = std::min(kRowsAtOnce, codec.image_height - codec.next_scanline);
      // libjpeg takes rows without const and leaves them as they are.
      for (JDIMENSION i = 0; i < wanted; ++i)
        rows[i] = const_cast<std::uint8_t*>(pixels) + (codec.next_scanline + i) * stride;
      jpeg_write_scanlines(&codec, rows, wanted);
    }
    jpeg_finish_compress(&codec);
    return true;
  }

  bool write_planes(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, std::size_t stride,
                    int quantizer_percent, unsigned restart_rows) {
    if (setjmp(guard.escape) != 0) return false;
    begin(JCS_YCbCr, true);
    jpeg_set_linear_quality(&codec, quantizer_percent, TRUE);
    codec.restart_in_rows = static_cast<int>(restart_rows);
    jpeg_start_compress(&codec, TRUE);
    while (codec.next_scanline < codec.image_height) {
      JSAMPROW luma[16];
      JSAMPROW blue[8];
      JSAMPROW red[8];
      const std::size_t top = codec.next_scanline;
      for (std::size_t i = 0; i < 16; ++i) luma[i] = const_cast<std::uint8_t*>(y) + (top + i) * stride;
      for (std::size_t i = 0; i < 8; ++i) {
        blue[i] = const_cast<std::uint8_t*>(cb) + (top / 2 + i) * (stride / 2);
        red[i] = const_cast<std::uint8_t*>(cr) + (top / 2 + i) * (stride / 2);
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
    return std::as_bytes(std::span<const std::uint8_t>(out).first(out.size() - sink.free_in_buffer));
  }
};

JpegEncoder::JpegEncoder() : state_(std::make_unique<State>()) {}
JpegEncoder::~JpegEncoder() = default;
JpegEncoder::JpegEncoder(JpegEncoder&&) noexcept = default;
JpegEncoder& JpegEncoder::operator=(JpegEncoder&&) noexcept = default;

Result<std::span<const std::byte>> JpegEncoder::encode(const Image& image, int quality) {
  if (quality < 1 || quality > 100)
    return make_error(Errc::invalid_argument, "JPEG quality is 1 to 100, not " + std::to_string(quality));
  if (image.pixels.size() < std::size_t{image.width} * image.height * 3)
    return make_error(Errc::invalid_argument, "a picture with fewer pixels than its size says");
  PENSTOCK_TRY(state_->prepare(image.width, image.height));
  return state_->finish(state_->write_rgb(image.pixels.data(), quality));
}

Result<std::span<const std::byte>> JpegEncoder::encode(const YccImage& image, int quantizer_percent,
                                                       unsigned restart_rows) {
  if (quantizer_percent < 1 || quantizer_percent > 5000)
    return make_error(Errc::invalid_argument, "the JPEG quantizer is scaled by 1 to 5000 percent, not " +
                                                  std::to_string(quantizer_percent));
  const std::size_t luma = image.stride() * image.padded_height();
  if (image.planes[0].size() < luma || image.planes[1].size() < luma / 4 || image.planes[2].size() < luma / 4)
    return make_error(Errc::invalid_argument, "a picture with fewer pixels than its size says");
  PENSTOCK_TRY(state_->prepare(image.width, image.height));
  return state_->finish(state_->write_planes(image.planes[0].data(), image.planes[1].data(),
                                             image.planes[2].data(), image.stride(), quantizer_percent,
                                             restart_rows));
}

}  // namespace penstock
