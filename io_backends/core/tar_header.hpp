// Headers of tar archives in the format of POSIX.1-1988 ("ustar"): the offsets of their fields, and how they
// are written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock {

// size of a block in bytes: a header is one block, and file contents are padded to whole blocks
inline constexpr size_t kTarBlockBytes = 512;
using TarBlock = std::array<char, kTarBlockBytes>;

// The number of zero bytes that follow a file's content of `bytes` bytes, to fill its last block.
constexpr size_t tar_padding(uint64_t bytes) {
  return size_t((kTarBlockBytes - bytes % kTarBlockBytes) % kTarBlockBytes);
}

struct TarField {
  size_t offset;
  size_t bytes;
};
inline constexpr TarField kTarName{0, 100};
inline constexpr TarField kTarMode{100, 8};
inline constexpr TarField kTarUser{108, 8};
inline constexpr TarField kTarGroup{116, 8};
inline constexpr TarField kTarSize{124, 12};
inline constexpr TarField kTarTime{136, 12};
inline constexpr TarField kTarChecksum{148, 8};
inline constexpr TarField kTarType{156, 1};
inline constexpr TarField kTarMagic{257, 8};  // the fields "magic" and "version" together
inline constexpr TarField kTarPrefix{345, 155};

// What tar_header() writes besides the name. It writes 0 as user and group.
struct TarFacts {
  uint64_t bytes = 0;  // a size of 8 GiB or more is written in base 256, which current programs can read
  char type = '0';     // '0': a regular file
  unsigned mode = 0644;
  uint64_t time_s = 0;  // seconds since 1970
};

// Makes a header. Returns no value if the name is empty or does not fit. A name of up to 100 bytes fits. A
// longer one needs a slash with at most 155 bytes before it and at most 100 bytes after it.
std::optional<TarBlock> tar_header(std::string_view name, const TarFacts& facts);

// Returns the checksum of a header: the sum of its bytes, with blanks in place of the checksum field itself.
// Some old programs sum the bytes as signed numbers; `signed_bytes` does the same.
int64_t tar_checksum(std::string_view block, bool signed_bytes);

}  // namespace penstock
