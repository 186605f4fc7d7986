#include "miniapps/pipeline/hex_dump.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace penstock {
namespace {

using Octets = std::vector<uint8_t>;

Result<Octets> parse(std::string_view text) {
  Octets octets;
  const Result<size_t> count = parse_hex_dump(std::as_bytes(std::span(text)), octets);
  if (!count.ok()) return count.error();
  octets.resize(*count);
  return octets;
}

constexpr std::string_view kFull = "00401000 56 8D 44 24 08 50 8B F1 E8 1C 1B 00 00 C7 06 0f\n";

TEST(HexDump, HasTheOctetsOfAllLines) {
  const Octets line{0x56, 0x8D, 0x44, 0x24, 0x08, 0x50, 0x8B, 0xF1, 0xE8, 0x1C, 0x1B, 0, 0, 0xC7, 0x06, 0x0F};
  Octets twice = line;
  twice.insert(twice.end(), line.begin(), line.end());
  EXPECT_EQ(parse(std::string(kFull) + std::string(kFull)).value(), twice);
  EXPECT_EQ(parse(kFull.substr(0, kFull.size() - 1)).value(), line) << "the last line may lack its end";
  EXPECT_EQ(parse("").value(), Octets());
}

TEST(HexDump, TakesShortLinesUnknownOctetsAndCarriageReturns) {
  EXPECT_EQ(parse("00401000 FF ?? 01\r\n401003 02\n00401004\n").value(), (Octets{0xFF, 0, 1, 2}));
  std::string carriage(kFull);
  carriage.insert(carriage.size() - 1, "\r");
  EXPECT_EQ(parse(carriage + carriage).value().size(), 32U);
  std::string unknown(kFull);
  unknown.replace(9, 2, "??");
  EXPECT_EQ(parse(unknown).value().front(), 0);
  EXPECT_EQ(parse(unknown).value().size(), 16U);
}

TEST(HexDump, ErrorNamesTheOffset) {
  for (const std::string_view wrong :
       {" 56 8D\n", "\n", "00401000 5\n", "00401000 5G\n", "00401000  56\n", "0040100X 56\n", "00401000,56\n",
        "00401000 56 8D \n", "00401000 5?\n", "?0401000 56\n"}) {
    const Result<Octets> got = parse(std::string(kFull) + std::string(wrong));
    ASSERT_FALSE(got.ok()) << wrong;
    EXPECT_EQ(got.error().code, Errc::corrupt);
    EXPECT_NE(got.error().what.find("byte 57"), std::string::npos) << got.error().what;
  }
  std::string full(kFull);
  full[30] = '-';
  EXPECT_FALSE(parse(full).ok());
}

TEST(HexDump, NeverReturnsMoreBytesThanTheTextHas) {
  std::string many;
  for (int i = 0; i < 100; ++i) many += "0 11\n";
  EXPECT_EQ(parse(many).value().size(), 100U);
  EXPECT_EQ(parse(std::string(5000, '0')).value().size(), 0U) << "an address alone";
}

}  // namespace
}  // namespace penstock
