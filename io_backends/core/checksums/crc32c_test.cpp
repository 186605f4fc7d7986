#include "io_backends/core/checksums/crc32c.hpp"

#include <numeric>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

using Crc = uint32_t (*)(std::span<const std::byte>, uint32_t);

// RFC 3720 (iSCSI), appendix B.4, and the check value of the CRC catalogue.
void expect_known_answers(Crc crc) {
  EXPECT_EQ(crc(bytes_of("123456789"), 0), 0xe3069283U);
  EXPECT_EQ(crc({}, 0), 0U);
  std::vector<std::byte> bytes(32, std::byte{0});
  EXPECT_EQ(crc(bytes, 0), 0x8a9136aaU);
  bytes.assign(32, std::byte{0xff});
  EXPECT_EQ(crc(bytes, 0), 0x62a8ab43U);
  for (unsigned i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc(bytes, 0), 0x46dd794eU);
  for (unsigned i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(31 - i);
  EXPECT_EQ(crc(bytes, 0), 0x113fdb5cU);
}

TEST(Crc32c, KnownAnswers) {
  expect_known_answers(crc32c);
}

TEST(Crc32c, KnownAnswersOfThePortableVersion) {
  expect_known_answers(crc32c_portable);
}

TEST(Crc32c, EveryVersionAgreesAtEveryLengthAndAlignment) {
  const auto bytes = pattern(5'000);
  const std::span<const std::byte> all(bytes);
  for (size_t offset = 0; offset < 9; ++offset)
    for (size_t length = 0; length < 300; ++length)
      ASSERT_EQ(crc32c(all.subspan(offset, length)), crc32c_portable(all.subspan(offset, length)));
  EXPECT_EQ(crc32c(all), crc32c_portable(all)) << crc32c_method();
}

TEST(Crc32c, ContinuesFromAnEarlierSum) {
  const auto bytes = pattern(1'000);
  const std::span<const std::byte> all(bytes);
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{7}, size_t{500}, size_t{1'000}}) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
    EXPECT_EQ(crc32c_portable(all.subspan(cut), crc32c_portable(all.first(cut))), crc32c(all));
  }
}

TEST(Crc32c, CombinesTwo) {
  const auto bytes = pattern(100'000);
  const std::span<const std::byte> all(bytes);
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{4'096}, size_t{65'537}, size_t{100'000}})
    EXPECT_EQ(crc32c_combine(crc32c(all.first(cut)), crc32c(all.subspan(cut)), bytes.size() - cut),
              crc32c(all));
}

TEST(Crc32c, PowersMultiply) {
  for (const uint64_t a : {uint64_t{1} << 24U, (uint64_t{1} << 40U) + 77, uint64_t{1} << 62U})
    for (const uint64_t b : {uint64_t{0}, uint64_t{255}, (uint64_t{1} << 32U) + 3})
      EXPECT_EQ(crc32c_power(a + b), crc32c_shift(crc32c_power(a), crc32c_power(b))) << a << " + " << b;
}

TEST(Crc32c, ShiftsByAFixedLengthAsCombineDoes) {
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{4'080}, uint64_t{1} << 40U}) {
    const CrcShift shift = crc32c_fixed_shift(length);
    for (const uint32_t a : {0U, 1U, 0x80000000U, 0xdeadbeefU, 0xffffffffU})
      EXPECT_EQ(shift.combine(a, 0x12345678U), crc32c_combine(a, 0x12345678U, length)) << length;
    EXPECT_EQ(crc32c_shift(0x9abcdef0U, crc32c_power(length)), crc32c_combine(0x9abcdef0U, 0, length))
        << length;
  }
}

}  // namespace
}  // namespace penstock
