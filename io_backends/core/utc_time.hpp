// Formats times in UTC as text.
#pragma once

#include <time.h>

#include <ctime>
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

inline std::string utc_now() {
  return utc_text(std::time(nullptr));
}

}  // namespace penstock
