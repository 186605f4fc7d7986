#include "io_backends/core/cli/printable.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace penstock {
namespace {

// Reads a text of utf8_name() back, as its comment says.
std::string read_back(std::string_view text) {
  if (text.find("\\x") == std::string_view::npos) return std::string(text);
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      name += text[i];
    } else if (text[++i] == 'x') {
      name += char(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      name += text[i];
    }
  }
  return name;
}

TEST(Utf8Name, CanBeReadBack) {
  const std::pair<std::string_view, std::string_view> pairs[] = {{"plain/n\xc3\xa4me", "plain/n\xc3\xa4me"},
                                                                 {"a\\b\nc", "a\\b\nc"},
                                                                 {"caf\xe9", "caf\\xe9"},
                                                                 {"caf\\xe9", "caf\\\\xe9"},
                                                                 {"a\\b\xff", "a\\\\b\\xff"},
                                                                 {"\xc3", "\\xc3"},
                                                                 {"\\\\x", "\\\\\\\\x"},
                                                                 {"", ""}};
  for (const auto& [name, text] : pairs) {
    EXPECT_EQ(utf8_name(name), text);
    EXPECT_EQ(read_back(text), name);
  }
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
