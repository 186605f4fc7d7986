#include "datagen/codec/content_type.hpp"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

std::string name_of(std::string_view text) {
  const ContentType* const type = content_type_of(std::as_bytes(std::span(text)));
  return type == nullptr ? "" : std::string(type->name);
}

TEST(ContentType, IsTheOneThatTheFirstBytesSay) {
  using namespace std::string_literals;
  EXPECT_EQ(name_of("\x1f\x8b\x08"s), "gzip data");
  EXPECT_EQ(name_of("\x28\xb5\x2f\xfd\x04"s), "Zstandard (zstd) data");
  EXPECT_EQ(name_of("BZh91AY"), "bzip2 data");
  EXPECT_EQ(name_of("\xfd\x37zXZ\0\0"s), "xz data");
  EXPECT_EQ(name_of("\x78\x9c\x01"s), "zlib data");
  EXPECT_EQ(name_of("\x78\x01x"s), "zlib data");
  EXPECT_EQ(name_of("GIF89a..."), "a GIF picture");
  EXPECT_EQ(name_of("RIFF\x10\0\0\0WEBPVP8 "s), "a WebP picture");
  EXPECT_EQ(name_of("RIFF\x10\0\0\0WAVEfmt "s), "a RIFF file (sound or video)");
  EXPECT_EQ(name_of("BM\x36\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"s), "a BMP picture");
  EXPECT_EQ(name_of("II*\0\x08"s), "a TIFF picture");
  EXPECT_EQ(name_of("MM\0*\x08"s), "a TIFF picture");
  EXPECT_EQ(name_of("\0\0\0\x1c"
                    "ftypheic"s),
            "a HEIC picture");
  EXPECT_EQ(name_of("\0\0\0\x1c"
                    "ftypavif"s),
            "an AVIF picture");
  EXPECT_EQ(name_of("\0\0\0\x1c"
                    "ftypisom"s),
            "an MP4 video");
  EXPECT_EQ(name_of("  \n<!DOCTYPE HTML>"), "an HTML page");
  EXPECT_EQ(name_of("\xef\xbb\xbf<html>"s), "an HTML page");
  EXPECT_EQ(name_of("version https://git-lfs.github.com/spec/v1\n"),
            "a Git LFS pointer in place of the data");
  EXPECT_EQ(name_of("PAR1\x15"), "a Parquet file");
  EXPECT_EQ(name_of("\x40\0\0\0\0\0\0\0{\"__metadata__\":"s), "a safetensors file");
  EXPECT_EQ(name_of("\x80\x04\x95\x10"s), "a Python pickle");
  EXPECT_EQ(name_of("\x93NUMPY\x01"s), "a NumPy array");
  EXPECT_EQ(name_of("CDF\x01\0\0\0\0"s), "a netCDF file of the classic format");
  EXPECT_EQ(name_of("MATLAB 5.0 MAT-file, Platform: GLNXA64"), "a MATLAB file without HDF5");
  EXPECT_EQ(name_of("\xef\xbb\xbf<?xml version=\"1.0\"?><Error>"s), "XML");
  EXPECT_EQ(name_of("{\n  \"error\": \"not found\"}"), "JSON text");
  EXPECT_EQ(name_of(std::string(257, 'n') + "ustar"), "a tar archive");
  EXPECT_EQ(name_of("ORCHIDS" + std::string(250, 'n') + "ustar"), "a tar archive");
}

TEST(ContentType, IsUnknownForOtherBytes) {
  using namespace std::string_literals;
  for (const std::string& text : {""s, "B"s, "{curly}"s, "CDF"s, "BMX is a bicycle"s, "hello world"s,
                                  std::string(600, '\0'), "x\x9bz"s, "\x80\x04z"s, "<h"s, "\x1f"s})
    EXPECT_EQ(name_of(text), "") << text;
}

TEST(ContentType, IsDescribedWithItsRemedy) {
  const auto text = [](std::string_view beginning) {
    return describe_content(std::as_bytes(std::span(beginning)), "TFRecord");
  };
  EXPECT_EQ(text("BZh9"), "bzip2 data, not TFRecord: decompress it first");
  EXPECT_EQ(text("PAR1"), "a Parquet file, not TFRecord");
  EXPECT_EQ(text("abcd"), "");
}

}  // namespace
}  // namespace penstock
