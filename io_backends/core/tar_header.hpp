// Headers of tar archives in the format of POSIX.1-1988 ("ustar"): the offsets of their fields, and how they
// are written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock {

inline constexpr std::size_t kTarBlock = 512;  // a header has one block; contents are padded to whole blocks
using TarBlock = std::array<char, kTarBlock>;

// The number of zeros after a content of `bytes` bytes.
constexpr std::size_t tar_padding(std::uint64_t bytes) {
  return static_cast<std::size_t>((kTarBlock - bytes % kTarBlock) % kTarBlock);
}

struct TarField {
  std::size_t at;
  std::size_t bytes;
};
inline constexpr TarField kTarName{0, 100};
inline constexpr TarField kTarMode{100, 8};
inline constexpr TarField kTarUser{108, 8};
inline constexpr TarField kTarGroup{116, 8};
inline constexpr TarField kTarSize{124, 12};
inline constexpr TarField kTarTime{136, 12};
inline constexpr TarField kTarChecksum{148, 8};
inline constexpr TarField kTarType{156, 1};
inline constexpr TarField kTarMagic{257, 8};  // includes the version
inline constexpr TarField kTarPrefix{345, 155};

// The fields of a header other than the name. The owner is 0.
struct TarFacts {
  std::uint64_t bytes = 0;  // from 8 GiB on in base 256, which current programs read
  char type = '0';          // '0': a regular file
  unsigned mode = 0644;
  std::uint64_t time_s = 0;  // seconds since 1970
};

// Makes a header. No value if the name is empty or does not fit. A name of up to 100 bytes fits. A longer one
// needs a slash with at most 155 bytes before it and at most 100 bytes after it.
std::optional<TarBlock> tar_header(std::string_view name, const TarFacts& facts);

// The checksum: the sum of the header's bytes, with the checksum field as blanks. Some old programs add
// signed bytes.
std::int64_t tar_sum(std::string_view block, bool of_signed_bytes);

}  // namespace penstock
