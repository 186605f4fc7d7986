// Formats times in UTC as text, and reads such text.
#pragma once

#include <time.h>

#include <ctime>
#include <optional>
#include <string>

namespace penstock {

// Formats a time: "2026-11-20T09:30:00Z", or by another `format` of strftime(). Returns "" if the text needs
// more than 31 bytes.
[[gnu::format(strftime, 2, 0)]] inline std::string utc_text(std::time_t when,
                                                            const char* format = "%Y-%m-%dT%H:%M:%SZ") {
  std::tm parts{};
  ::gmtime_r(&when, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

// Reads a time that utc_text() wrote with its default format. Absent if the text is no such time.
inline std::optional<std::time_t> parse_utc(const std::string& text) {
  std::tm parts{};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return ::timegm(&parts);
}

inline std::string utc_now() {
  return utc_text(std::time(nullptr));
}

}  // namespace penstock
