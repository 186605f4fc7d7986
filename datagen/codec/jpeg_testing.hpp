// Makes and compares pictures for the tests of the JPEG decoder.
#pragma once

#include <gtest/gtest.h>

// jpeglib.h needs FILE and size_t to be declared before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <vector>

#include "datagen/codec/jpeg_encoder.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {

using Bytes = std::vector<std::byte>;

inline Bytes copy(std::span<const std::byte> bytes) {
  return Bytes(bytes.begin(), bytes.end());
}

// A picture whose channels change slowly and evenly, so that every quality keeps it almost exactly.
inline Image slopes(uint32_t width, uint32_t height) {
  Image image{width, height, {}};
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x) {
      image.pixels.push_back(uint8_t(40 + 150 * x / width));
      image.pixels.push_back(uint8_t(60 + 120 * y / height));
      image.pixels.push_back(uint8_t(200 - 100 * x / width));
    }
  return image;
}

inline Image speckles(uint32_t width, uint32_t height, uint64_t seed) {
  Image image{width, height, {}};
  const RandomStream random(seed, "speckles");
  for (uint64_t i = 0; i < uint64_t{width} * height * 3; ++i)
    image.pixels.push_back(uint8_t(random.below(i, 256)));
  return image;
}

inline double mean_difference(const Image& a, const Image& b) {
  if (a.width != b.width || a.height != b.height || a.pixels.size() != b.pixels.size()) return 1e9;
  double sum = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(int{a.pixels[i]} - int{b.pixels[i]});
  return sum / double(a.pixels.size());
}

// A kind of JPEG that Penstock's encoder does not make. The tests make it directly with the library.
struct Kind {
  J_COLOR_SPACE input = JCS_RGB;
  J_COLOR_SPACE stored = JCS_YCbCr;
  int components = 3;
  bool progressive = false;
  bool adobe = false;
  bool arithmetic = false;
  int restart_rows = 0;  // rows of coding units from one restart marker to the next
};
inline Bytes encode_kind(const Kind& kind, JDIMENSION width, JDIMENSION height,
                         std::vector<uint8_t> samples) {
  jpeg_compress_struct codec{};
  jpeg_error_mgr errors{};
  codec.err = jpeg_std_error(&errors);
  jpeg_create_compress(&codec);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&codec, &out, &size);
  codec.image_width = width;
  codec.image_height = height;
  codec.input_components = kind.components;
  codec.in_color_space = kind.input;
  jpeg_set_defaults(&codec);
  jpeg_set_colorspace(&codec, kind.stored);
  jpeg_set_quality(&codec, 95, TRUE);
  if (kind.progressive) jpeg_simple_progression(&codec);
  if (!kind.adobe) codec.write_Adobe_marker = FALSE;
  if (kind.arithmetic) codec.arith_code = TRUE;
  codec.restart_in_rows = kind.restart_rows;
  jpeg_start_compress(&codec, TRUE);
  while (codec.next_scanline < height) {
    JSAMPROW row = samples.data() + size_t{codec.next_scanline} * width * size_t(kind.components);
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  const std::byte* begin = reinterpret_cast<const std::byte*>(out);
  Bytes bytes(begin, begin + size);
  jpeg_destroy_compress(&codec);
  std::free(out);
  return bytes;
}

inline Bytes progressive(const Image& image) {
  Kind kind;
  kind.progressive = true;
  return encode_kind(kind, image.width, image.height, image.pixels);
}

inline Bytes baseline(const Image& image, int quality = 90) {
  JpegEncoder encoder;
  return copy(encoder.encode(image, quality).value());
}

// Cuts a part out of a whole decoded picture, to compare it with decode_part().
inline Image cut_out(const Image& image, const PicturePart& part) {
  Image cut{part.width, part.height, {}};
  for (uint32_t y = part.top; y < part.top + part.height; ++y) {
    const auto row = image.pixels.begin() + ptrdiff_t((size_t{y} * image.width + part.left) * 3);
    cut.pixels.insert(cut.pixels.end(), row, row + ptrdiff_t(part.width) * 3);
  }
  return cut;
}

inline void expect_parts_of(std::span<const std::byte> jpeg) {
  JpegDecoder decoder;
  Image whole;
  ASSERT_TRUE(decoder.decode(jpeg, whole).ok());
  const RandomStream random(1, "parts");
  std::vector<PicturePart> parts{{0, 0, whole.width, whole.height},
                                 {whole.width - 1, whole.height - 1, 1, 1}};
  for (uint64_t i = 0; i < 60; ++i) {
    PicturePart part;
    part.left = uint32_t(random.below(4 * i, whole.width));
    part.top = uint32_t(random.below(4 * i + 1, whole.height));
    part.width = uint32_t(1 + random.below(4 * i + 2, whole.width - part.left));
    part.height = uint32_t(1 + random.below(4 * i + 3, whole.height - part.top));
    parts.push_back(part);
  }
  for (const PicturePart& part : parts) {
    Image cut;
    ASSERT_TRUE(decoder.decode_part(jpeg, part, cut).ok());
    EXPECT_EQ(cut.width, part.width);
    EXPECT_EQ(cut.height, part.height);
    EXPECT_EQ(cut.pixels, cut_out(whole, part).pixels)
        << part.width << "x" << part.height << " at " << part.left << "," << part.top << " of " << whole.width
        << "x" << whole.height;
  }
}

inline PictureWarnings warnings(std::initializer_list<PictureWarning> list) {
  PictureWarnings all;
  for (const PictureWarning one : list) all.set(size_t(one));
  return all;
}

}  // namespace penstock
