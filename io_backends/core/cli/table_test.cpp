#include "io_backends/core/cli/table.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "io_backends/core/cli/count_of.hpp"

namespace penstock {
namespace {

TEST(Table, AlignsNumbersRightAndTextLeft) {
  Table table({{"tier", Align::left}, {"files/s"}, {"note", Align::left}});
  table.row({"disk", "1 234", "fine"});
  table.row({"fast", "67 700"});
  EXPECT_EQ(table.text(),
            "tier  files/s  note\n"
            "disk    1 234  fine\n"
            "fast   67 700\n");
}

TEST(Table, CountsCodePointsNotBytes) {
  Table table({{"t", Align::left}, {"n"}});
  table.row({"süß", "1"});
  table.row({"abcd", "2"});
  EXPECT_EQ(table.text(), "t     n\nsüß   1\nabcd  2\n");
}

TEST(Format, RatesFollowTheUnits) {
  Output output;
  EXPECT_EQ(format_rate(135.5 * 1048576, output), "135.5");
  EXPECT_EQ(rate_unit(output), "MiB/s");
  output.si_units = true;
  EXPECT_EQ(format_rate(135.5e6, output), "135.5");
  EXPECT_EQ(rate_unit(output), "MB/s");
  EXPECT_EQ(format_bytes(112e3, output), "112 kB");
  output.si_units = false;
  EXPECT_EQ(format_bytes(1.8 * 1073741824, output), "1.8 GiB");
  EXPECT_EQ(format_bytes(12, output), "12 B");
  EXPECT_EQ(format_bytes(1048575, output), "1.0 MiB");
}

// On a terminal and in documents, digits are grouped. Programs that read a pipe, a log or an error message
// get numbers without commas.
TEST(Format, OnlyAnOutputForPeopleGroupsThousands) {
  const Output people{.groups_digits = true};
  EXPECT_EQ(format_count(16384, people), "16,384");
  EXPECT_EQ(format_count(999, people), "999");
  EXPECT_EQ(format_count(1234567, people), "1,234,567");
  EXPECT_EQ(format_number(-1234, people), "-1,234");
  EXPECT_EQ(format_number(1234567.8, people), "1,234,568");
  EXPECT_EQ(format_rate(9220.4 * 1048576, people), "9,220");
  EXPECT_EQ(format_bytes(1021.0 * 1048576, people), "1,021 MiB");
  EXPECT_EQ(format_ratio(6973.23, people), "6,973.23x");
  EXPECT_EQ(format_ms(1234e6, people), "1,234");
  EXPECT_EQ(count_of(2000, "object", people), "2,000 objects");
  EXPECT_EQ(format_count(16384, Output{}), "16384");
  EXPECT_EQ(format_rate(9220.4 * 1048576, Output{}), "9220");
  EXPECT_EQ(format_bytes(1021.0 * 1048576, Output{}), "1021 MiB");
  EXPECT_EQ(format_ratio(6973.23), "6973.23x");
}

TEST(Format, CountsHaveSingularAndPlural) {
  EXPECT_EQ(count_of(1, "turn"), "1 turn");
  EXPECT_EQ(count_of(0, "turn"), "0 turns");
  EXPECT_EQ(count_of(2000, "object"), "2000 objects");
  EXPECT_EQ(count_of(1, "copy", "copies"), "1 copy");
  EXPECT_EQ(count_of(2, "turn is", "turns are"), "2 turns are");
}

TEST(Format, NumbersKeepThreeDigits) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(0.71), "0.71");
  EXPECT_EQ(format_number(0.0137), "0.014");
  EXPECT_EQ(format_number(12.34), "12.3");
  EXPECT_EQ(format_number(135.52), "135.5");
  EXPECT_EQ(format_number(999.96), "1000");
  EXPECT_EQ(format_number(1234567.8), "1234568");
  EXPECT_EQ(format_number(-1234), "-1234");
  EXPECT_EQ(format_number(0.0012), "0.0012");
  EXPECT_EQ(format_number(1e300), "1e+300");
  EXPECT_EQ(format_number(std::nan("")), "-");
}

TEST(Format, PercentRatioAndTime) {
  EXPECT_EQ(format_percent(0.11), "11%");
  EXPECT_EQ(format_percent(0.003), "0.3%");
  EXPECT_EQ(format_percent(0.0001), "0%");
  EXPECT_EQ(format_percent(0.994), "99%");
  EXPECT_EQ(format_percent(0.996), "99.6%");
  EXPECT_EQ(format_percent(0.9997), "99.97%");
  EXPECT_EQ(format_percent(0.99999), "100%");
  EXPECT_EQ(format_percent(1), "100%");
  EXPECT_EQ(format_percent_apart(0.896, 0.9), "89.6%");
  EXPECT_EQ(format_percent_apart(0.89996, 0.9), "89.996%");
  EXPECT_EQ(format_percent_apart(0.9, 0.896), "90.0%");
  EXPECT_EQ(format_percent_apart(0.9, 0.9), "90%");
  EXPECT_EQ(format_percent_apart(0.88, 0.9), "88%");
  EXPECT_EQ(format_percent_apart(0.9 - 1e-9, 0.9), "90%");
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_percent(12.34), "1234%");
  EXPECT_EQ(format_ratio(1.017), "1.02x");
  EXPECT_EQ(format_percent(1e300), "1e+302%");
  EXPECT_EQ(format_ratio(1e300), "1e+300x");
  EXPECT_EQ(format_ms(2.9e6), "2.90");
  EXPECT_EQ(format_seconds(0.0045), "4.5 ms");
  EXPECT_EQ(format_seconds(INFINITY), "-");
}

}  // namespace
}  // namespace penstock
