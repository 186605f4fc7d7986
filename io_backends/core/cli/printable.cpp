#include "io_backends/core/cli/printable.hpp"

#include <fmt/format.h>

namespace penstock {

std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (at(i) & 0xc0U) == 0x80U; };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead < 0xf0) {
    const bool allowed = !(lead == 0xe0 && at(1) < 0xa0) && !(lead == 0xed && at(1) >= 0xa0);
    return allowed && follows(1) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead < 0xf5) {
    const bool allowed = !(lead == 0xf0 && at(1) < 0x90) && !(lead == 0xf4 && at(1) >= 0x90);
    return allowed && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_length(text);
    if (byte == '\n')
      out += "\\n";
    else if (length == 0 || byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else if (byte == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0)  // U+0080 to U+009f
      out += fmt::format("\\x{:02x}\\x{:02x}", byte, static_cast<unsigned char>(text[1]));
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace penstock
