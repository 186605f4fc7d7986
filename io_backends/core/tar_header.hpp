// Headers of tar archives as POSIX.1-1988 has them ("ustar"): where their fields are, and how they are
// written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock {

inline constexpr std::size_t kTarBlock = 512;  // headers are one, contents are padded to whole ones
using TarBlock = std::array<char, kTarBlock>;

// Zeros that follow a content of that many bytes.
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
inline constexpr TarField kTarMagic{257, 8};  // with the version after it
inline constexpr TarField kTarPrefix{345, 155};

// What a header says of its member besides the name; no owner.
struct TarFacts {
  std::uint64_t bytes = 0;  // from 8 GiB on in base 256, as all of today's programs read it
  char type = '0';          // a regular file
  unsigned mode = 0644;
  std::uint64_t time_s = 0;  // since 1970
};

// Nothing where the name does not fit: it is empty, or has more than 100 bytes and no slash parts it into a
// prefix of at most 155 and a name of at most 100.
std::optional<TarBlock> tar_header(std::string_view name, const TarFacts& facts);

// The sum of a header's bytes, its own field taken as blanks. Old programs added signed bytes.
std::int64_t tar_sum(std::string_view block, bool of_signed_bytes);

}  // namespace penstock
