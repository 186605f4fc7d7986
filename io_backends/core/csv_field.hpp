// Formats text as a field of a CSV file.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

// Returns the text, in quotes as RFC 4180 describes if it contains a comma, a quote or a line break.
inline std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace penstock
