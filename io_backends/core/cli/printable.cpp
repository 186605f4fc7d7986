#include "io_backends/core/cli/printable.hpp"

#include <fmt/format.h>

namespace penstock {

size_t utf8_length(std::string_view text) {
  const auto byte_at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto is_continuation = [&](size_t i) { return (byte_at(i) & 0xc0U) == 0x80U; };
  const unsigned lead_byte = byte_at(0);
  if (lead_byte < 0x80) return 1;
  if (lead_byte >= 0xc2 && lead_byte < 0xe0) return is_continuation(1) ? 2 : 0;
  if (lead_byte >= 0xe0 && lead_byte < 0xf0) {
    const bool in_range =
        !(lead_byte == 0xe0 && byte_at(1) < 0xa0) && !(lead_byte == 0xed && byte_at(1) >= 0xa0);
    return in_range && is_continuation(1) && is_continuation(2) ? 3 : 0;
  }
  if (lead_byte >= 0xf0 && lead_byte < 0xf5) {
    const bool in_range =
        !(lead_byte == 0xf0 && byte_at(1) < 0x90) && !(lead_byte == 0xf4 && byte_at(1) >= 0x90);
    return in_range && is_continuation(1) && is_continuation(2) && is_continuation(3) ? 4 : 0;
  }
  return 0;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const size_t length = utf8_length(text);
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

std::string utf8_name(std::string_view name) {
  bool is_plain = name.find("\\x") == std::string_view::npos;
  for (std::string_view rest = name; is_plain && !rest.empty();) {
    const size_t length = utf8_length(rest);
    is_plain = length > 0;
    rest.remove_prefix(length);
  }
  if (is_plain) return std::string(name);
  std::string out;
  while (!name.empty()) {
    const size_t length = utf8_length(name);
    if (length == 0)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(name.front()));
    else if (name.front() == '\\')
      out += "\\\\";
    else
      out += name.substr(0, length);
    name.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace penstock
