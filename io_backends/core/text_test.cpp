#include "io_backends/core/text.hpp"

#include <cstdint>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

TEST(Text, OnlyAsciiLettersChangeTheirCase) {
  EXPECT_EQ(lower_case("aZ-9\xc4"), "az-9\xc4");
  EXPECT_EQ(upper_case("aZ-9\xe4"), "AZ-9\xe4");
  EXPECT_TRUE(equals_ignoring_case("JPeg", "jpeg"));
  EXPECT_FALSE(equals_ignoring_case("jpe", "jpeg"));
  EXPECT_FALSE(equals_ignoring_case("jpeg", "JPEG"));
}

TEST(Text, TrimsBothEnds) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim("\na ", " "), "\na");
}

TEST(Text, TakesPartsUntilNothingIsLeft) {
  std::string_view text = "a,,b";
  EXPECT_EQ(take_part(text, ','), "a");
  EXPECT_EQ(take_part(text, ','), "");
  EXPECT_EQ(take_part(text, ','), "b");
  EXPECT_EQ(text, "");
  EXPECT_EQ(take_part(text, ','), "");
}

TEST(Text, OnlyAWholeTextOfDigitsIsANumber) {
  EXPECT_EQ(parse_digits<uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_digits<uint32_t>("ff", 16), 255U);
  EXPECT_EQ(parse_digits<int64_t>("-7"), -7);
  for (const std::string_view wrong : {"", "-7", "7 ", " 7", "7x", "18446744073709551616"})
    EXPECT_FALSE(parse_digits<uint64_t>(wrong)) << wrong;
}

}  // namespace
}  // namespace penstock
