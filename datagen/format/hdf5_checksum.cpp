#include "datagen/format/hdf5_checksum.hpp"

#include <array>
#include <bit>

namespace penstock {
namespace {

struct State {
  std::uint32_t a;
  std::uint32_t b;
  std::uint32_t c;

  void mix() {
    constexpr std::array<int, 6> kTurns{4, 6, 8, 16, 19, 4};
    for (const int turns : kTurns) {
      a -= c;
      a ^= std::rotl(c, turns);
      c += b;
      // The three variables rotate.
      const std::uint32_t first = a;
      a = b;
      b = c;
      c = first;
    }
  }
  void finish() {
    constexpr std::array<int, 7> kTurns{14, 11, 25, 16, 4, 14, 24};
    for (const int turns : kTurns) {
      c ^= b;
      c -= std::rotl(b, turns);
      const std::uint32_t last = b;
      b = c;
      c = a;
      a = last;
    }
  }
};

std::uint32_t word(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4 && at + i < bytes.size(); ++i)
    value |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

}  // namespace

std::uint32_t hdf5_checksum(std::span<const std::byte> bytes) {
  const std::uint32_t start = 0xdeadbeef + static_cast<std::uint32_t>(bytes.size());
  State state{start, start, start};
  if (bytes.empty()) return state.c;
  for (;; bytes = bytes.subspan(12)) {
    state.a += word(bytes, 0);
    state.b += word(bytes, 4);
    state.c += word(bytes, 8);
    if (bytes.size() <= 12) break;
    state.mix();
  }
  state.finish();
  return state.b;
}

}  // namespace penstock
