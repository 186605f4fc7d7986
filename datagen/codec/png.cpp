#include "datagen/codec/png.hpp"

#include <cstring>
#include <string>
#include <string_view>

#include "datagen/codec/content_type.hpp"

#ifdef PENSTOCK_HAS_PNG
#include <png.h>

#include <csetjmp>
#include <new>

#include "io_backends/core/checksums/checksums_count.hpp"
#endif

namespace penstock {

#ifndef PENSTOCK_HAS_PNG

Result<void> png_available() {
  return make_error(Errc::unsupported, "this build lacks libpng");
}
Result<void> decode_png(std::span<const std::byte> /*png*/, Image& /*out*/) {
  return png_available();
}
Result<std::span<const std::byte>> encode_png(const Image& /*image*/, std::vector<std::byte>& out) {
  PENSTOCK_TRY(png_available());
  return std::span<const std::byte>(out);
}

#else

namespace {

constexpr uint64_t kMostSidePixels = 1'000'000;
constexpr uint64_t kMostInflation = 1032;  // deflate can code 258 bytes in 2 bits, so 1032 bytes in one byte
constexpr size_t kSignatureBytes = 8;
// Size of the output buffer beyond the bytes of the pixels. It is for the chunk headers around the compressed
// rows and, in small pictures, for deflate's own headers.
constexpr size_t kOverheadBytes = 4096;

// The level of deflate. Level 6 would make a picture like a photograph 1% smaller, but takes more than twice
// as long.
constexpr int kDeflateLevel = 3;

// Contains the error that libpng reports, and the place to continue after it. libpng reports an error by a
// callback that must not return: it calls longjmp(). The jump calls no destructors, so no object with a
// destructor may be created between setjmp() and longjmp().
struct Guard {
  std::jmp_buf jump_target{};
  char message[128] = {};
  bool out_of_memory = false;
  bool warned = false;
};

// Reports an error to the caller of the current step: stores the error's text in the Guard and jumps back to
// the step's setjmp(). libpng calls it in the thread that uses the codec.
[[noreturn]] void give_up(png_structp png, png_const_charp message) {
  auto* guard = static_cast<Guard*>(png_get_error_ptr(png));
  std::strncpy(guard->message, message, sizeof guard->message - 1);
  guard->out_of_memory = guard->out_of_memory || std::strstr(message, "memory") != nullptr;
  std::longjmp(guard->jump_target, 1);
}
void note_warning(png_structp png, png_const_charp /*message*/) {
  static_cast<Guard*>(png_get_error_ptr(png))->warned = true;
}

// The chunks of a PNG that end inside the file.
struct Chunks {
  size_t bytes = 0;       // where the last of them ends
  bool has_end = false;   // the last is the end chunk
  bool cut_data = false;  // the chunk after them has pixels or is needed to decode them
};

// Finds the chunks. This is done first, because libpng does not check that a chunk ends inside the file
// before it allocates the memory that the chunk claims.
Chunks find_chunks(std::span<const std::byte> png) {
  constexpr size_t kChunkOverheadBytes = 12;  // bytes of length, kind and checksum
  constexpr size_t kHeadBytes = 8;            // length and kind
  const auto text = [&](size_t at) {
    return std::string_view(reinterpret_cast<const char*>(png.data()) + at, 4);
  };
  bool has_data = false;
  Chunks found{.bytes = kSignatureBytes};
  while (!found.has_end) {
    const size_t left = png.size() - found.bytes;
    if (left < kHeadBytes) {
      found.cut_data = !has_data;
      return found;
    }
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8U | std::to_integer<size_t>(png[found.bytes + i]);
    const std::string_view kind = text(found.bytes + 4);
    if (left < kChunkOverheadBytes || length > left - kChunkOverheadBytes) {
      found.cut_data = !has_data || kind == "IDAT";
      return found;
    }
    has_data = has_data || kind == "IDAT";
    found.has_end = kind == "IEND";
    found.bytes += kChunkOverheadBytes + length;
  }
  return found;
}

void read_source(png_structp png, png_bytep to, size_t bytes) {
  auto& left = *static_cast<std::span<const std::byte>*>(png_get_io_ptr(png));
  if (bytes > left.size()) png_error(png, "it is truncated");
  std::memcpy(to, left.data(), bytes);
  left = left.subspan(bytes);
}
void write_output(png_structp png, png_bytep from, size_t bytes) {
  auto& left = *static_cast<std::span<std::byte>*>(png_get_io_ptr(png));
  if (bytes > left.size()) png_error(png, "it has more data than a picture of its size");
  std::memcpy(left.data(), from, bytes);
  left = left.subspan(bytes);
}
void flush(png_structp /*png*/) {}

// Decodes one picture. Each step is a function of its own that calls setjmp() first. After that it uses only
// plain data, because an error's longjmp() calls no destructors.
struct PngSource {
  Guard guard;
  std::span<const std::byte> left;  // bytes that libpng has not read yet
  png_structp png = nullptr;
  png_infop info = nullptr;
  int passes = 0;

  explicit PngSource(std::span<const std::byte> bytes) : left(bytes) {}
  ~PngSource() { png_destroy_read_struct(&png, &info, nullptr); }
  PngSource(const PngSource&) = delete;
  PngSource& operator=(const PngSource&) = delete;

  bool read_header() {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &guard, give_up, note_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) {
      guard.out_of_memory = true;
      return false;
    }
    if (setjmp(guard.jump_target) != 0) return false;
    png_set_read_fn(png, &left, read_source);
    png_set_user_limits(png, kMostSidePixels, kMostSidePixels);
    if (!kVerifyChecksums) png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_read_info(png, info);
    return true;
  }

  bool to_rgb() {
    if (setjmp(guard.jump_target) != 0) return false;
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
    passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return true;
  }

  bool read_rows(uint8_t* pixels, size_t stride, uint32_t height, bool has_end) {
    if (setjmp(guard.jump_target) != 0) return false;
    for (int pass = 0; pass < passes; ++pass)
      for (uint32_t y = 0; y < height; ++y) png_read_row(png, pixels + y * stride, nullptr);
    if (has_end) png_read_end(png, nullptr);
    return true;
  }

  Error error(size_t bytes) const {
    return make_error(guard.out_of_memory ? Errc::exhausted : Errc::corrupt,
                      "cannot decode PNG of " + std::to_string(bytes) +
                          " bytes: " + (guard.message[0] != 0 ? guard.message : "no memory"));
  }
};

struct PngSink {
  Guard guard;
  std::span<std::byte> left;  // the free part of the output buffer
  png_structp png = nullptr;
  png_infop info = nullptr;

  explicit PngSink(std::span<std::byte> out) : left(out) {}
  ~PngSink() { png_destroy_write_struct(&png, &info); }
  PngSink(const PngSink&) = delete;
  PngSink& operator=(const PngSink&) = delete;

  bool write(const uint8_t* pixels, uint32_t width, uint32_t height) {
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &guard, give_up, note_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) return false;
    if (setjmp(guard.jump_target) != 0) return false;
    png_set_user_limits(png, kMostSidePixels, kMostSidePixels);
    png_set_write_fn(png, &left, write_output, flush);
    png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, kDeflateLevel);
    png_write_info(png, info);
    for (uint32_t y = 0; y < height; ++y) png_write_row(png, pixels + size_t{y} * width * 3);
    png_write_end(png, nullptr);
    return true;
  }
};

}  // namespace

Result<void> png_available() {
  return success();
}

Result<void> decode_png(std::span<const std::byte> png, Image& out) {
  if (png.size() < kSignatureBytes ||
      png_sig_cmp(reinterpret_cast<png_const_bytep>(png.data()), 0, kSignatureBytes) != 0)
    return make_error(Errc::corrupt, "cannot decode PNG of " + std::to_string(png.size()) +
                                         " bytes: it does not start like a PNG");
  const Chunks chunks = find_chunks(png);
  if (chunks.cut_data)
    return make_error(Errc::corrupt, "cannot decode PNG of " + std::to_string(png.size()) +
                                         " bytes: it is truncated, because its chunks are longer");
  PngSource source(png.first(chunks.bytes));
  if (!source.read_header()) return source.error(png.size());
  const uint32_t width = png_get_image_width(source.png, source.info);
  const uint32_t height = png_get_image_height(source.png, source.info);
  const uint64_t pixels = uint64_t{width} * height;
  if (pixels > kMostJpegPixels || pixels / 8 / kMostInflation > png.size())  // a pixel needs at least one bit
    return make_error(Errc::corrupt, "cannot decode PNG of " + std::to_string(png.size()) +
                                         " bytes: it claims " + std::to_string(width) + "x" +
                                         std::to_string(height) + " pixels, more than its bytes can hold");
  if (!source.to_rgb()) return source.error(png.size());
  const size_t stride = size_t{width} * 3;
  if (png_get_rowbytes(source.png, source.info) != stride)
    return make_error(Errc::corrupt, "cannot decode PNG: its rows do not have three channels");
  try {
    out.width = width;
    out.height = height;
    out.pixels.resize(stride * height);
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory for a picture of " + std::to_string(width) + "x" +
                                           std::to_string(height) + " pixels");
  }
  if (!source.read_rows(out.pixels.data(), stride, height, chunks.has_end)) return source.error(png.size());
  out.warnings.reset();
  out.warnings[size_t(PictureWarning::odd_chunks)] = source.guard.warned;
  out.warnings[size_t(PictureWarning::no_end_marker)] = !chunks.has_end;
  out.warnings[size_t(PictureWarning::bytes_after_end)] = chunks.has_end && chunks.bytes < png.size();
  return success();
}

Result<std::span<const std::byte>> encode_png(const Image& image, std::vector<std::byte>& out) {
  const std::string size = std::to_string(image.width) + "x" + std::to_string(image.height) + " pixels";
  if (image.width == 0 || image.height == 0 || image.width > kMostSidePixels ||
      image.height > kMostSidePixels || uint64_t{image.width} * image.height > kMostJpegPixels)
    return make_error(Errc::invalid_argument,
                      "cannot encode a PNG of " + size +
                          ": a side must have 1 to 1000000 pixels, and a picture at most 2^30");
  if (image.pixels.size() < size_t{image.width} * image.height * 3)
    return make_error(Errc::invalid_argument, "the picture has fewer pixels than width times height");
  const size_t raw_bytes = (size_t{image.width} * 3 + 1) * image.height;
  try {
    if (out.size() < raw_bytes + raw_bytes / 64 + kOverheadBytes)
      out.resize(raw_bytes + raw_bytes / 64 + kOverheadBytes);
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory to encode a PNG of " + size);
  }
  PngSink sink(out);
  if (!sink.write(image.pixels.data(), image.width, image.height))
    return make_error(sink.guard.out_of_memory ? Errc::exhausted : Errc::internal,
                      "cannot encode a PNG of " + size + ": " + sink.guard.message);
  return std::span<const std::byte>(out).first(out.size() - sink.left.size());
}

#endif

bool is_png(std::span<const std::byte> bytes) {
  constexpr std::string_view kMagic = "\x89PNG\r\n\x1a\n";
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<bool> is_png_not_jpeg(std::span<const std::byte> picture) {
  if (is_png(picture)) return true;
  if (picture.size() >= 2 && picture[0] == std::byte{0xff} && picture[1] == std::byte{0xd8}) return false;
  if (const std::string text = describe_content(picture, "a JPEG or PNG picture"); !text.empty())
    return make_error(Errc::corrupt, text);
  return make_error(Errc::corrupt,
                    std::to_string(picture.size()) + " bytes that are neither a JPEG nor a PNG picture");
}

Result<void> PictureDecoder::decode(std::span<const std::byte> picture, Image& out) {
  PENSTOCK_ASSIGN(const bool png, is_png_not_jpeg(picture));
  return png ? decode_png(picture, out) : jpeg_.decode(picture, out);
}

}  // namespace penstock
