#include "datagen/codec/content_type.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

constexpr std::string_view kDecompress = "decompress it first";
constexpr std::string_view kConvert = "convert it first";
constexpr std::string_view kToNetcdf4 = "convert it with 'nccopy -k nc4'";

// A file of this type has `magic` at `offset`.
struct Magic {
  size_t offset;
  std::string_view magic;
  ContentType type;
};

using namespace std::string_view_literals;  // magic numbers may have zero bytes

constexpr Magic kMagics[] = {
    {257, "ustar"sv, {"a tar archive", ""}},  // first: it begins with the name of a file, which may be any
    {0, "\x1f\x8b"sv, {"gzip data", kDecompress}},
    {0, "\x28\xb5\x2f\xfd"sv, {"Zstandard (zstd) data", kDecompress}},
    {0, "BZh"sv, {"bzip2 data", kDecompress}},
    {0, "\xfd\x37zXZ\0"sv, {"xz data", kDecompress}},
    {0, "\x04\x22\x4d\x18"sv, {"LZ4 data", kDecompress}},
    {0, "\xff\x06\0\0sNaPpY"sv, {"Snappy data", kDecompress}},
    {0, "\xff\xd8\xff"sv, {"a JPEG picture", ""}},
    {0, "\x89PNG\r\n\x1a\n"sv, {"a PNG picture", ""}},
    {0, "GIF87a"sv, {"a GIF picture", kConvert}},
    {0, "GIF89a"sv, {"a GIF picture", kConvert}},
    {8, "WEBP"sv, {"a WebP picture", kConvert}},
    {0, "II*\0"sv, {"a TIFF picture", kConvert}},
    {0, "MM\0*"sv, {"a TIFF picture", kConvert}},
    {0, "II+\0"sv, {"a BigTIFF picture", kConvert}},
    {0, "MM\0+"sv, {"a BigTIFF picture", kConvert}},
    {4, "ftypavif"sv, {"an AVIF picture", kConvert}},
    {4, "ftypavis"sv, {"an AVIF picture", kConvert}},
    {4, "ftyphei"sv, {"a HEIC picture", kConvert}},
    {4, "ftyphev"sv, {"a HEIC picture", kConvert}},
    {4, "ftypmif1"sv, {"a HEIF picture", kConvert}},
    {4, "ftypmsf1"sv, {"a HEIF picture", kConvert}},
    {4, "ftyp"sv, {"an MP4 video", ""}},
    {0, "\0\0\0\x0cjP  \r\n\x87\n"sv, {"a JPEG 2000 picture", kConvert}},
    {0, "\xff\x0a"sv, {"a JPEG XL picture", kConvert}},
    {0, "\0\0\0\x0cJXL \r\n\x87\n"sv, {"a JPEG XL picture", kConvert}},
    {0, "8BPS"sv, {"a Photoshop picture", kConvert}},
    {0, "qoif"sv, {"a QOI picture", kConvert}},
    {0, "PAR1"sv, {"a Parquet file", ""}},
    {0, "ARROW1\0\0"sv, {"an Arrow file", ""}},
    {0, "ORC"sv, {"an ORC file", ""}},
    {0, "Obj\x01"sv, {"an Avro file", ""}},
    {0, "\x89HDF\r\n\x1a\n"sv, {"an HDF5 file", ""}},
    {0, "\x93NUMPY"sv, {"a NumPy array", ""}},
    {0, "PK\x03\x04"sv, {"a ZIP archive", ""}},
    {0, "PK\x05\x06"sv, {"an empty ZIP archive", ""}},
    {0, "7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", "unpack it first"}},
    {0, "Rar!\x1a\x07"sv, {"a RAR archive", "unpack it first"}},
    {0, "SQLite format 3\0"sv, {"an SQLite database", ""}},
    {0, "%PDF-"sv, {"a PDF document", ""}},
    {0,
     "\x7f"
     "ELF"sv,
     {"a program or library", ""}},
    {0, "RIFF"sv, {"a RIFF file (sound or video)", ""}},
    {0,
     "version https://git-lfs.github.com/spec/"sv,
     {"a Git LFS pointer in place of the data", "fetch them with 'git lfs pull'"}},
    {0,
     "version https://hawser.github.com/spec/"sv,
     {"a Git LFS pointer in place of the data", "fetch them with 'git lfs pull'"}},
    {0, "CDF\x01"sv, {"a netCDF file of the classic format", kToNetcdf4}},
    {0, "CDF\x02"sv, {"a netCDF file of the classic format", kToNetcdf4}},
    {0, "CDF\x05"sv, {"a netCDF file of the classic format", kToNetcdf4}},
    {0, "MATLAB 5.0 MAT-file"sv, {"a MATLAB file without HDF5", "save it with -v7.3"}},
};

constexpr ContentType kBmp{"a BMP picture", kConvert};
constexpr ContentType kZlib{"zlib data", kDecompress};
constexpr ContentType kHtml{"an HTML page", "download the file again"};
constexpr ContentType kSafetensors{"a safetensors file", ""};
constexpr ContentType kXml{"XML", ""};
constexpr ContentType kJson{"JSON text", ""};
constexpr ContentType kPickle{"a Python pickle", ""};

uint64_t little_endian(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) number = number << 8U | uint8_t(bytes[i]);
  return number;
}

// Types whose first bytes are too short or too variable for the table.
const ContentType* type_by_structure(std::string_view text) {
  // BMP: "BM", and the size of its second header, at byte 14, is that of one of the known headers.
  if (text.starts_with("BM") && text.size() >= 18) {
    constexpr uint64_t kHeaderBytes[] = {12, 16, 40, 52, 56, 64, 108, 124};
    if (std::find(std::begin(kHeaderBytes), std::end(kHeaderBytes), little_endian(text.substr(14, 4))) !=
        std::end(kHeaderBytes))
      return &kBmp;
  }
  // zlib (RFC 1950): 0x78 is deflate with a window of 32 KiB; both bytes together are a multiple of 31.
  if (text.size() >= 2 && text[0] == '\x78' && (0x78U * 256 + uint8_t(text[1])) % 31 == 0) return &kZlib;
  // safetensors: the length of a JSON object, and the object.
  if (text.size() > 9 && text.substr(8).starts_with("{\"") && little_endian(text.substr(0, 8)) < 100'000'000)
    return &kSafetensors;
  // Pickle, protocol 2 to 5: its opcode, the version, and then the opcode of a first object.
  if (text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5 &&
      std::string_view("]}(\x95"
                       "c")
              .find(text[2]) != std::string_view::npos)
    return &kPickle;
  std::string_view page = text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text;
  page.remove_prefix(std::min(page.find_first_not_of(" \t\r\n"), page.size()));
  for (const std::string_view tag : {"<!doctype html", "<html", "<head"})
    if (equals_ignoring_case(page.substr(0, tag.size()), tag)) return &kHtml;
  if (page.starts_with("<?xml")) return &kXml;
  if (page.starts_with('{')) {
    page.remove_prefix(1);
    page.remove_prefix(std::min(page.find_first_not_of(" \t\r\n"), page.size()));
    if (page.starts_with('"')) return &kJson;
  }
  return nullptr;
}

}  // namespace

const ContentType* content_type_of(std::span<const std::byte> beginning) {
  // NOLINTNEXTLINE(*-reinterpret-cast)
  const std::string_view text(reinterpret_cast<const char*>(beginning.data()),
                              std::min(beginning.size(), kContentTypeBytes));
  for (const Magic& row : kMagics)
    if (text.size() >= row.offset && text.substr(row.offset).starts_with(row.magic)) return &row.type;
  return type_by_structure(text);
}

std::string describe_content(std::span<const std::byte> beginning, std::string_view expected) {
  const ContentType* const type = content_type_of(beginning);
  if (type == nullptr) return "";
  return fmt::format("{}, not {}{}{}", type->name, expected, type->remedy.empty() ? "" : ": ", type->remedy);
}

}  // namespace penstock
