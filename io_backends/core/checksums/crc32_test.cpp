#include "io_backends/core/checksums/crc32.hpp"

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

// The check value of the CRC catalogue, and zlib's results for 32 bytes of zeros and of ones.
TEST(Crc32, KnownAnswers) {
  for (const auto crc : {crc32, crc32_portable}) {
    EXPECT_EQ(crc(bytes_of("123456789"), 0), 0xcbf43926U);
    EXPECT_EQ(crc({}, 0), 0U);
    std::vector<std::byte> bytes(32, std::byte{0});
    EXPECT_EQ(crc(bytes, 0), 0x190a55adU);
    bytes.assign(32, std::byte{0xff});
    EXPECT_EQ(crc(bytes, 0), 0xff6cab0bU);
  }
}

TEST(Crc32, BothVersionsAgreeAtEveryLengthAndAlignment) {
  const auto bytes = pattern(5'000);
  const std::span<const std::byte> all(bytes);
  for (size_t offset = 0; offset < 9; ++offset)
    for (size_t length = 0; length < 300; ++length)
      ASSERT_EQ(crc32(all.subspan(offset, length)), crc32_portable(all.subspan(offset, length)));
  EXPECT_EQ(crc32(all), crc32_portable(all)) << crc32_method();
}

TEST(Crc32, ContinuesAndCombines) {
  const auto bytes = pattern(100'000);
  const std::span<const std::byte> all(bytes);
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{4'096}, size_t{65'537}, size_t{100'000}}) {
    EXPECT_EQ(crc32(all.subspan(cut), crc32(all.first(cut))), crc32(all));
    EXPECT_EQ(crc32_portable(all.subspan(cut), crc32_portable(all.first(cut))), crc32(all));
    EXPECT_EQ(crc32_combine(crc32(all.first(cut)), crc32(all.subspan(cut)), bytes.size() - cut), crc32(all));
  }
}

TEST(Crc32, ShiftsByAFixedLengthAsCombineDoes) {
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{4'080}, uint64_t{1} << 40U}) {
    const CrcShift shift = crc32_fixed_shift(length);
    for (const uint32_t a : {0U, 1U, 0x80000000U, 0xdeadbeefU, 0xffffffffU})
      EXPECT_EQ(shift.combine(a, 0x12345678U), crc32_combine(a, 0x12345678U, length)) << length;
  }
}

}  // namespace
}  // namespace penstock
