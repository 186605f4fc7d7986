#include "io_backends/core/units.hpp"

#include <gtest/gtest.h>

namespace penstock {
namespace {

using namespace std::chrono_literals;

TEST(Units, SizesAsPeopleWriteThem) {
  EXPECT_EQ(*parse_size("512"), 512U);
  EXPECT_EQ(*parse_size("4k"), 4096U);
  EXPECT_EQ(*parse_size("4KiB"), 4096U);
  EXPECT_EQ(*parse_size("1M"), 1048576U);
  EXPECT_EQ(*parse_size("2GiB"), 2147483648U);
  EXPECT_EQ(*parse_size("1.5g"), 1610612736U);
  EXPECT_EQ(*parse_size("150MB"), 150000000U);
  EXPECT_EQ(*parse_size("3GB"), 3000000000U);
  EXPECT_EQ(*parse_size("18446744073709551615"), UINT64_MAX);
}

TEST(Units, WrongSizesAreRefused) {
  for (const char* text :
       {"", "k", "-1", "4x", "4kb b", "1..2", "99999999999999999999", "16EiB", "1e3", "0x10", "."})
    EXPECT_FALSE(parse_size(text).ok()) << text;
}

TEST(Units, DurationsNeedAUnit) {
  EXPECT_EQ(*parse_duration("250us"), 250us);
  EXPECT_EQ(*parse_duration("10ms"), 10ms);
  EXPECT_EQ(*parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(*parse_duration("2m"), 120s);
  EXPECT_EQ(*parse_duration("0"), 0s);
  for (const char* text : {"", "5", "-1s", "s", "1d", "999999999999h"})
    EXPECT_FALSE(parse_duration(text).ok()) << text;
}

TEST(Units, RatesAreSizesPerSecond) {
  EXPECT_EQ(*parse_rate("150MB/s"), 150000000U);
  EXPECT_EQ(*parse_rate("1GiB/s"), 1073741824U);
  EXPECT_EQ(*parse_rate("100B/s"), 100U);
  EXPECT_EQ(*parse_rate("200k"), 204800U);
  EXPECT_FALSE(parse_rate("5").ok());  // the unit is missing
  EXPECT_FALSE(parse_rate("5/s").ok());
  EXPECT_FALSE(parse_rate("fast").ok());
}

TEST(Units, ListsAndRanges) {
  using List = std::vector<uint64_t>;
  EXPECT_EQ(*parse_list("1,2,4,8"), (List{1, 2, 4, 8}));
  EXPECT_EQ(*parse_list("1..4"), (List{1, 2, 3, 4}));
  EXPECT_EQ(*parse_list("1..64*2"), (List{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(*parse_list("1..50*3"), (List{1, 3, 9, 27}));
  EXPECT_EQ(*parse_list("0..100+50,7"), (List{0, 50, 100, 7}));
  EXPECT_EQ(*parse_list("0..0"), (List{0}));
  EXPECT_EQ(*parse_list("0..5+10"), (List{0}));
  EXPECT_EQ(*parse_list("3..3*2"), (List{3}));
  EXPECT_EQ(*parse_list("18446744073709551614..18446744073709551615"), (List{UINT64_MAX - 1, UINT64_MAX}));
  for (const char* text : {"", "1,", "a", "4..1", "0..8*2", "1..8*1", "1..8+0", "1..1000000", "1...3"})
    EXPECT_FALSE(parse_list(text).ok()) << text;
}

TEST(Units, RealNumbers) {
  EXPECT_DOUBLE_EQ(*parse_real("0.5"), 0.5);
  EXPECT_DOUBLE_EQ(*parse_real("-2"), -2.0);
  EXPECT_DOUBLE_EQ(*parse_real("1e-3"), 1e-3);
  for (const char* text : {"", ".", "1e", "1x", "--1", "nan", "1e9999"})
    EXPECT_FALSE(parse_real(text).ok()) << text;
}

TEST(Units, HumanForms) {
  EXPECT_EQ(format_size(512), "512 B");
  EXPECT_EQ(format_size(4096), "4.0 KiB");
  EXPECT_EQ(format_size(114688), "112 KiB");
  EXPECT_EQ(format_size(1900000000), "1.77 GiB");
  EXPECT_EQ(format_size(uint64_t{64} << 30U), "64 GiB");
  EXPECT_EQ(format_size(12'960'000), "12.4 MiB") << "twice this is 24.7 MiB";
  EXPECT_EQ(format_size(25'920'000), "24.7 MiB");
  EXPECT_EQ(format_size(10'481'000), "10 MiB") << "9.9955 MiB";
  EXPECT_EQ(format_size(104'857'000), "100 MiB");
  EXPECT_EQ(format_count(16384), "16384");
  EXPECT_EQ(format_count(7), "7");
  EXPECT_EQ(format_count(1234567), "1234567");
  EXPECT_EQ(format_duration(1500us), "1.5 ms");
  EXPECT_EQ(format_duration(90min), "90.0 min");
}

TEST(Units, NearestNames) {
  const std::vector<std::string_view> names{"posix", "mem", "uring", "threads"};
  EXPECT_EQ(nearest_name("posx", names), "posix");
  EXPECT_EQ(nearest_name("thread", names), "threads");
  EXPECT_EQ(nearest_name("urign", names), "uring");
  EXPECT_EQ(nearest_name("completely-else", names), "");
}

}  // namespace
}  // namespace penstock
