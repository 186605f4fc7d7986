#include "io_backends/core/cli/printable.hpp"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Utf8Name, CanBeReadBack) {
  EXPECT_EQ(utf8_name("plain/n\xc3\xa4me"), "plain/n\xc3\xa4me");
  EXPECT_EQ(utf8_name("a\\b\nc"), "a\\b\nc");
  EXPECT_EQ(utf8_name("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(utf8_name("caf\\xe9"), "caf\\\\xe9");
  EXPECT_EQ(utf8_name("a\\b\xff"), "a\\\\b\\xff");
  EXPECT_EQ(utf8_name("\xc3"), "\\xc3");
  EXPECT_EQ(utf8_name(""), "");
}

TEST(Printable, EscapesControlCharactersAndInvalidUtf8) {
  EXPECT_EQ(printable("plain name.jpg"), "plain name.jpg");
  EXPECT_EQ(printable("\xc3\xbc\xe4\xb8\xad\xf0\x9f\x90\xb1"), "\xc3\xbc\xe4\xb8\xad\xf0\x9f\x90\xb1");
  EXPECT_EQ(printable("a\nb\tc\x1b[31m\x7f"), "a\\nb\\x09c\\x1b[31m\\x7f");
  EXPECT_EQ(printable("\xc2\x9b[31m\xc2\xa0"), "\\xc2\\x9b[31m\xc2\xa0");
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                             // cut short
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(printable(printable("a\n\xff\x1b")), printable("a\n\xff\x1b"));
}

}  // namespace
}  // namespace penstock
