#include "io_backends/core/tar_header.hpp"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

std::string header_of(std::string_view name, const TarFacts& facts = {}) {
  const auto block = tar_header(name, facts);
  return block ? std::string(block->data(), block->size()) : "";
}

TEST(TarHeader, SizesAndNamesAtTheirBounds) {
  const auto size_field = [](uint64_t bytes) { return header_of("a", {.bytes = bytes}).substr(124, 12); };
  EXPECT_EQ(size_field((uint64_t{1} << 33U) - 1), std::string("77777777777\0", 12));
  EXPECT_EQ(size_field(uint64_t{1} << 33U), std::string("\x80\0\0\0\0\0\0\x02\0\0\0\0", 12));
  const auto fits = [](const std::string& name) { return tar_header(name, {}).has_value(); };
  EXPECT_TRUE(fits(std::string(100, 'a')));
  EXPECT_FALSE(fits(std::string(101, 'a')));
  EXPECT_TRUE(fits(std::string(155, 'p') + "/" + std::string(100, 'a')));
  EXPECT_FALSE(fits(std::string(156, 'p') + "/" + std::string(100, 'a')));
  EXPECT_FALSE(fits("p/" + std::string(101, 'a')));
  EXPECT_TRUE(fits("p/" + std::string(50, 'b') + "/" + std::string(99, 'a')));
  EXPECT_FALSE(fits(""));
}

TEST(TarHeader, TheChecksumCoversAllBytes) {
  const std::string header = header_of("s/1.session", {.bytes = 12345, .mode = 0600, .time_s = 1700000000});
  ASSERT_EQ(header.size(), kTarBlockBytes);
  int64_t sum = 0;
  for (size_t i = 0; i < header.size(); ++i)
    sum += i >= 148 && i < 156 ? 32 : static_cast<unsigned char>(header[i]);
  EXPECT_EQ(std::stoll(header.substr(148, 6), nullptr, 8), sum);
  EXPECT_EQ(tar_checksum(header, false), sum);
  EXPECT_EQ(header.substr(100, 8), std::string("0000600\0", 8));
  EXPECT_EQ(header.substr(136, 12), std::string("14524770400\0", 12));
}

}  // namespace
}  // namespace penstock
