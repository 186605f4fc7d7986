#include "io_backends/core/checksums/tfrecord_framing.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {
namespace {

template <size_t N>
std::array<std::byte, N> bytes_of(const std::array<int, N>& values) {
  std::array<std::byte, N> bytes{};
  std::transform(values.begin(), values.end(), bytes.begin(),
                 [](int v) { return static_cast<std::byte>(v); });
  return bytes;
}

// The first bytes of every event file of TensorBoard: its first record has 24 bytes.
TEST(TfRecordFraming, HeadersAreThoseOfTensorFlow) {
  EXPECT_EQ(tfrecord_header(24), bytes_of<12>({0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22}));
  EXPECT_EQ(tfrecord_header(0), bytes_of<12>({0, 0, 0, 0, 0, 0, 0, 0, 0x29, 0x03, 0x98, 0x07}));
}

TEST(TfRecordFraming, FootersHoldTheMaskedChecksum) {
  EXPECT_EQ(tfrecord_footer(0), bytes_of<4>({0xd8, 0xea, 0x82, 0xa2}));
  const std::string_view text = "penstock";
  EXPECT_EQ(tfrecord_footer(crc32c(std::as_bytes(std::span(text)))), bytes_of<4>({0x67, 0x53, 0x3d, 0x79}));
}

TEST(TfRecordFraming, LengthsAreReadBackAndEveryFlippedBitIsDetected) {
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40, UINT64_MAX}) {
    auto header = tfrecord_header(length);
    EXPECT_EQ(tfrecord_payload_bytes(header), length);
    for (size_t bit = 0; bit < 8 * header.size(); ++bit) {
      header[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      EXPECT_FALSE(tfrecord_payload_bytes(header)) << bit;
      header[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    }
  }
}

}  // namespace
}  // namespace penstock
