#include "datagen/format/hdf5/hdf5_checksum.hpp"

#include <array>
#include <bit>

namespace penstock {
namespace {

struct State {
  uint32_t a;
  uint32_t b;
  uint32_t c;

  void mix() {
    constexpr std::array<int, 6> kRotations{4, 6, 8, 16, 19, 4};
    for (const int bits : kRotations) {
      a -= c;
      a ^= std::rotl(c, bits);
      c += b;
      // Rotates the three names, as lookup3 does: the next step uses b as a, c as b, and a as c.
      const uint32_t old_a = a;
      a = b;
      b = c;
      c = old_a;
    }
  }
  void finish() {
    constexpr std::array<int, 7> kRotations{14, 11, 25, 16, 4, 14, 24};
    for (const int bits : kRotations) {
      c ^= b;
      c -= std::rotl(b, bits);
      const uint32_t old_b = b;
      b = c;
      c = a;
      a = old_b;
    }
  }
};

uint32_t word_at(std::span<const std::byte> bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4 && at + i < bytes.size(); ++i)
    value |= std::to_integer<uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

}  // namespace

uint32_t hdf5_checksum(std::span<const std::byte> bytes) {
  const uint32_t initial = 0xdeadbeef + uint32_t(bytes.size());
  State state{initial, initial, initial};
  if (bytes.empty()) return state.c;
  for (;; bytes = bytes.subspan(12)) {
    state.a += word_at(bytes, 0);
    state.b += word_at(bytes, 4);
    state.c += word_at(bytes, 8);
    if (bytes.size() <= 12) break;
    state.mix();
  }
  state.finish();
  return state.b;
}

void put_hdf5_message(HeaderBytes& messages, uint8_t type, const HeaderBytes& data) {
  messages.u8(type).u16(data.size()).u8(0).append(data.view());
}

std::vector<std::byte> hdf5_object_header(const HeaderBytes& messages) {
  constexpr uint8_t kSizeOf4Bytes = 2;  // flags: the messages' length has 4 bytes; no times are stored
  HeaderBytes header;
  header.text("OHDR").u8(2).u8(kSizeOf4Bytes).u32(messages.size()).append(messages.view());
  return header.u32(hdf5_checksum(header.view())).take();
}

}  // namespace penstock
