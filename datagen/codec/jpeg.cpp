#include "datagen/codec/jpeg.hpp"

#include <jerror.h>

#include <algorithm>
#include <iterator>
#include <new>

#include "datagen/codec/jpeg_guard.hpp"

namespace penstock {
namespace {

constexpr int kMostScans = 500;
// The most pixels that one byte of a Huffman-coded picture can represent. The decoder refuses a picture whose
// header claims more.
// A block of 64 pixels takes at least one bit, so one byte codes at most 8 blocks. Only the component of the
// highest resolution is counted here. It may have as few as a quarter of the picture's pixels (with sampling
// factors 4x1 and 1x4). So the result is 8 * 64 * 4.
constexpr uint64_t kMostPixelsPerByte = 2048;
// An arithmetic-coded picture may always claim up to this many pixels: in arithmetic coding, predictable
// content needs almost no bits. Above this number, kMostPixelsPerByte applies to such a picture too.
constexpr uint64_t kMostUnboundedPixels = uint64_t{1} << 22;
// read_part() decodes each line into a buffer, and copies it from there immediately, while it is in the
// cache. If the buffer began at a multiple of the vector size, libjpeg-turbo would use stores that bypass the
// caches (non-temporal), and loading the line again would take a tenth of the decoding time. So the buffer
// begins this many bytes after the start of its allocation.
constexpr size_t kMisalignmentBytes = 1;

// Reports an error to the caller of the current step: stores the error's text in the JpegGuard and jumps back
// to the step's setjmp(). libjpeg calls it in the thread that uses the codec.
[[noreturn]] void give_up(j_common_ptr codec) {
  JpegGuard* guard = static_cast<JpegGuard*>(codec->client_data);
  guard->code = codec->err->msg_code;
  (*codec->err->format_message)(codec, guard->message);
  std::longjmp(guard->jump_target, 1);
}

PictureWarning warning_of(int code) {
  switch (code) {
    case JWRN_EXTRANEOUS_DATA:
      return PictureWarning::stray_bytes;
    case JWRN_HIT_MARKER:
      return PictureWarning::early_end;
    case JWRN_JPEG_EOF:
      return PictureWarning::no_end_marker;
    case JWRN_MUST_RESYNC:
      return PictureWarning::wrong_restarts;
    case JWRN_HUFF_BAD_CODE:
      return PictureWarning::bad_codes;
    case JWRN_BOGUS_PROGRESSION:
      return PictureWarning::odd_scans;
    case JWRN_ADOBE_XFORM:
      return PictureWarning::unknown_colours;
    default:
      return PictureWarning::other;
  }
}

void add_warning(JpegGuard& guard, PictureWarning warning) {
  guard.warnings.set(size_t(warning));
}

bool has_warned(const JpegGuard& guard, PictureWarning warning) {
  return guard.warnings.test(size_t(warning));
}

// Takes a message of libjpeg; negative levels are warnings. Where the bytes of a picture end, libjpeg appends
// an end marker and makes up the pixels that are missing: that is an error here, as in Pillow and TensorFlow.
void on_message(j_common_ptr codec, int level) {
  if (level >= 0) return;
  const int code = codec->err->msg_code;
  if (code == JWRN_JFIF_MAJOR || code == JWRN_NOT_SEQUENTIAL) return;
  JpegGuard& guard = *static_cast<JpegGuard*>(codec->client_data);
  if (code == JWRN_HIT_MARKER && has_warned(guard, PictureWarning::no_end_marker)) give_up(codec);
  add_warning(guard, warning_of(code));
}

void stay_silent(j_common_ptr /*codec*/) {}

void stop_endless_scans(j_common_ptr codec) {
  // The cast is right, because only decoders call this function.
  j_decompress_ptr decoder = reinterpret_cast<j_decompress_ptr>(codec);
  if (decoder->input_scan_number > kMostScans) {
    JpegGuard* guard = static_cast<JpegGuard*>(codec->client_data);
    guard->code = JERR_BAD_PROGRESSION;
    std::snprintf(guard->message, sizeof guard->message, "more than %d scans", kMostScans);
    std::longjmp(guard->jump_target, 1);
  }
}

std::string decode_task(size_t bytes) {
  return "decode JPEG of " + std::to_string(bytes) + " bytes";
}

}  // namespace

void set_up(JpegGuard& guard) {
  jpeg_std_error(&guard.manager);
  guard.manager.error_exit = give_up;
  guard.manager.emit_message = on_message;
  guard.manager.output_message = stay_silent;
}

Error codec_error(const JpegGuard& guard, Errc other_code, const std::string& task) {
  return make_error(guard.code == JERR_OUT_OF_MEMORY ? Errc::exhausted : other_code,
                    "cannot " + task + ": " + guard.message);
}

struct JpegDecoder::Libjpeg {
  JpegGuard guard;
  jpeg_decompress_struct codec{};
  jpeg_progress_mgr progress{};
  // buffer for a decoded line; decode() uses it only for CMYK pictures, decode_part() uses it for all
  // pictures
  std::vector<uint8_t> line;

  Libjpeg() {
    set_up(guard);
    codec.err = &guard.manager;
    progress.progress_monitor = stop_endless_scans;
  }
  ~Libjpeg() { jpeg_destroy_decompress(&codec); }
  Libjpeg(const Libjpeg&) = delete;
  Libjpeg& operator=(const Libjpeg&) = delete;

  // Makes a new decoder. An old one keeps the tables of its last picture, and would decode a picture that
  // lacks tables with them. A new one costs about a microsecond.
  bool create() {
    jpeg_destroy_decompress(&codec);
    codec.err = &guard.manager;
    codec.client_data = &guard;
    if (setjmp(guard.jump_target) != 0) return false;
    jpeg_create_decompress(&codec);
    codec.progress = &progress;
    return true;
  }

  bool read_header(const unsigned char* data, unsigned long size) {
    guard.warnings.reset();
    if (setjmp(guard.jump_target) != 0) return false;
    jpeg_mem_src(&codec, data, size);
    jpeg_read_header(&codec, TRUE);
    return true;
  }

  bool start(unsigned shrink) {
    if (setjmp(guard.jump_target) != 0) return false;
    const bool is_cmyk = codec.jpeg_color_space == JCS_CMYK || codec.jpeg_color_space == JCS_YCCK;
    if (is_cmyk && codec.saw_Adobe_marker == 0) add_warning(guard, PictureWarning::cmyk_without_adobe);
    codec.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
    codec.scale_num = 1;
    codec.scale_denom = shrink;
    jpeg_calc_output_dimensions(&codec);
    return true;
  }

  bool read_rows(uint8_t* pixels, uint8_t* ink_row) {
    if (setjmp(guard.jump_target) != 0) return false;
    jpeg_start_decompress(&codec);
    const size_t stride = size_t{codec.output_width} * 3;
    while (codec.output_scanline < codec.output_height) {
      uint8_t* row = pixels + codec.output_scanline * stride;
      if (ink_row != nullptr) {
        jpeg_read_scanlines(&codec, &ink_row, 1);
        ink_to_rgb(ink_row, row, codec.output_width);
        continue;
      }
      JSAMPROW rows[kJpegRowsAtOnce];
      const JDIMENSION row_count = std::min(kJpegRowsAtOnce, codec.output_height - codec.output_scanline);
      for (JDIMENSION i = 0; i < row_count; ++i) rows[i] = row + i * stride;
      jpeg_read_scanlines(&codec, rows, row_count);
    }
    finish();
    return true;
  }

  // Reads to the end marker, after the last row. A step calls it: an error jumps to the step's setjmp().
  void finish() {
    if (lacks_data() && has_warned(guard, PictureWarning::no_end_marker)) {
      guard.code = JERR_INPUT_EOF;
      std::snprintf(guard.message, sizeof guard.message, "Premature end of JPEG file");
      std::longjmp(guard.jump_target, 1);
    }
    jpeg_finish_decompress(&codec);
    const unsigned char* const rest = codec.src->next_input_byte;
    const size_t rest_bytes = codec.src->bytes_in_buffer;
    if (rest_bytes == 0 || has_warned(guard, PictureWarning::no_end_marker)) return;
    constexpr unsigned char kStart[] = {0xff, 0xd8, 0xff};
    const bool has_picture =
        std::search(rest, rest + rest_bytes, std::begin(kStart), std::end(kStart)) != rest + rest_bytes;
    add_warning(guard, has_picture ? PictureWarning::more_pictures : PictureWarning::bytes_after_end);
  }

  // Whether a component of the picture was in no scan, or lacks_scans().
  bool lacks_data() const {
    for (int component = 0; component < codec.num_components; ++component)
      if (codec.comp_info[component].quant_table == nullptr) return true;
    return lacks_scans();
  }

  // Whether scans of a progressive picture are missing. libjpeg then smooths its blocks, but not in the same
  // way if it skips a part of them. So such a picture is decoded from its first line and column on.
  bool lacks_scans() const {
    if (codec.progressive_mode == FALSE || codec.coef_bits == nullptr) return false;
    for (int component = 0; component < codec.num_components; ++component)
      for (const int missing_bits : codec.coef_bits[component])
        if (missing_bits != 0) return true;
    return false;
  }

  // Decodes `part` to RGB in `pixels`. `row` is a buffer for one line as wide as the whole picture.
  // Decodes one more coding unit (MCU) on each side of the part. libjpeg computes colour at full resolution
  // from neighbouring pixels, so the outermost columns that it decodes may be wrong.
  bool read_part(const PicturePart& part, uint8_t* row, uint8_t* pixels) {
    if (setjmp(guard.jump_target) != 0) return false;
    jpeg_start_decompress(&codec);
    const auto unit_width = static_cast<JDIMENSION>(codec.max_h_samp_factor * DCTSIZE);
    JDIMENSION left = part.left - std::min(part.left, unit_width);
    JDIMENSION width = std::min(codec.output_width, part.left + part.width + unit_width) - left;
    if (lacks_scans()) {
      left = 0;
      for (unsigned y = 0; y < part.top; ++y) {
        JSAMPROW rows[] = {row};
        jpeg_read_scanlines(&codec, rows, 1);
      }
    } else {
      jpeg_crop_scanline(&codec, &left, &width);
      jpeg_skip_scanlines(&codec, part.top);
    }
    const bool is_cmyk = codec.out_color_space == JCS_CMYK;
    const uint8_t* const first_pixel = row + size_t{part.left - left} * (is_cmyk ? 4 : 3);
    for (size_t y = 0; y < part.height; ++y) {
      JSAMPROW rows[] = {row};
      jpeg_read_scanlines(&codec, rows, 1);
      uint8_t* const out_row = pixels + y * part.width * 3;
      if (is_cmyk)
        ink_to_rgb(first_pixel, out_row, part.width);
      else
        std::copy_n(first_pixel, size_t{part.width} * 3, out_row);
    }
    if (codec.output_scanline == codec.output_height)
      finish();
    else
      jpeg_abort_decompress(&codec);
    return true;
  }

  // Converts inverted CMYK to RGB.
  static void ink_to_rgb(const uint8_t* ink, uint8_t* rgb, JDIMENSION width) {
    for (JDIMENSION x = 0; x < width; ++x, ink += 4, rgb += 3)
      for (size_t i = 0; i < 3; ++i) rgb[i] = uint8_t(ink[i] * ink[3] / 255);
  }

  Result<void> open(std::span<const std::byte> jpeg) {
    if (!create()) return codec_error(guard, Errc::internal, "set up the JPEG decoder");
    if (!read_header(reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size())) {
      jpeg_abort_decompress(&codec);
      return codec_error(guard, Errc::corrupt, decode_task(jpeg.size()));
    }
    const uint64_t pixels = uint64_t{codec.image_width} * codec.image_height;
    const bool too_large = pixels > kMostJpegPixels;
    const bool is_arithmetic = codec.arith_code != 0;
    const bool exceeds_bound =
        pixels / kMostPixelsPerByte > jpeg.size() && (!is_arithmetic || pixels > kMostUnboundedPixels);
    if (!too_large && !exceeds_bound) return {};
    const std::string size =
        std::to_string(codec.image_width) + "x" + std::to_string(codec.image_height) + " pixels";
    jpeg_abort_decompress(&codec);
    return make_error(Errc::corrupt, "cannot " + decode_task(jpeg.size()) +
                                         (too_large ? ": " + size + " are above the limit of 2^30"
                                                    : ": it claims " + size + ", more than " +
                                                          (is_arithmetic ? "its few bytes can plausibly hold"
                                                                         : "its bytes can hold")));
  }
};

JpegDecoder::JpegDecoder() : libjpeg_(std::make_unique<Libjpeg>()) {}
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

Result<JpegHeader> JpegDecoder::read_header(std::span<const std::byte> jpeg) {
  PENSTOCK_TRY(libjpeg_->open(jpeg));
  const JpegHeader header{libjpeg_->codec.image_width, libjpeg_->codec.image_height,
                          libjpeg_->codec.num_components, libjpeg_->codec.restart_interval};
  jpeg_abort_decompress(&libjpeg_->codec);
  return header;
}

Result<void> JpegDecoder::decode(std::span<const std::byte> jpeg, Image& out, unsigned shrink) {
  if (shrink != 1 && shrink != 2 && shrink != 4 && shrink != 8)
    return make_error(
        Errc::invalid_argument,
        "a JPEG can be scaled down by 1, 2, 4 or 8 while decoding, not by " + std::to_string(shrink));
  PENSTOCK_TRY(libjpeg_->open(jpeg));
  jpeg_decompress_struct& codec = libjpeg_->codec;
  bool is_decoded = libjpeg_->start(shrink);
  if (is_decoded) {
    uint8_t* ink_row = nullptr;
    try {
      out.width = codec.output_width;
      out.height = codec.output_height;
      out.pixels.resize(size_t{out.width} * out.height * 3);
      if (codec.out_color_space == JCS_CMYK) {
        libjpeg_->line.resize(size_t{out.width} * 4);
        ink_row = libjpeg_->line.data();
      }
    } catch (const std::bad_alloc&) {
      jpeg_abort_decompress(&codec);
      return make_error(Errc::exhausted, "no memory for a picture of " + std::to_string(codec.image_width) +
                                             "x" + std::to_string(codec.image_height) + " pixels");
    }
    is_decoded = libjpeg_->read_rows(out.pixels.data(), ink_row);
  }
  out.warnings = libjpeg_->guard.warnings;
  if (is_decoded) return {};
  jpeg_abort_decompress(&codec);
  return codec_error(libjpeg_->guard, Errc::corrupt, decode_task(jpeg.size()));
}

Result<void> JpegDecoder::decode_part(std::span<const std::byte> jpeg, const PicturePart& part, Image& out) {
  PENSTOCK_TRY(libjpeg_->open(jpeg));
  jpeg_decompress_struct& codec = libjpeg_->codec;
  const auto is_inside = [](uint64_t from, uint64_t length, uint64_t all) {
    return length > 0 && from + length <= all;
  };
  if (!is_inside(part.left, part.width, codec.image_width) ||
      !is_inside(part.top, part.height, codec.image_height)) {
    jpeg_abort_decompress(&codec);
    return make_error(Errc::invalid_argument,
                      "the crop is outside a picture of " + std::to_string(codec.image_width) + "x" +
                          std::to_string(codec.image_height) + " pixels: " + std::to_string(part.width) +
                          "x" + std::to_string(part.height) + " at " + std::to_string(part.left) + "," +
                          std::to_string(part.top));
  }
  try {
    out.width = part.width;
    out.height = part.height;
    out.pixels.resize(size_t{part.width} * part.height * 3);
    libjpeg_->line.resize(size_t{codec.image_width} * 4 + kMisalignmentBytes);
  } catch (const std::bad_alloc&) {
    jpeg_abort_decompress(&codec);
    return make_error(Errc::exhausted, "no memory for a picture of " + std::to_string(part.width) + "x" +
                                           std::to_string(part.height) + " pixels");
  }
  const bool is_decoded =
      libjpeg_->start(1) &&
      libjpeg_->read_part(part, libjpeg_->line.data() + kMisalignmentBytes, out.pixels.data());
  out.warnings = libjpeg_->guard.warnings;
  if (is_decoded) return {};
  jpeg_abort_decompress(&codec);
  return codec_error(libjpeg_->guard, Errc::corrupt, decode_task(jpeg.size()));
}

}  // namespace penstock
