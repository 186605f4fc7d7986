// Writes JSON as text. JSON must be UTF-8, but names of files may have other bytes; those become U+FFFD.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace penstock {

using Json = nlohmann::ordered_json;

// The JSON on one line, without a newline at the end.
inline std::string one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Like one_line(), but in ASCII: every other character becomes an escape such as \u00e9.
inline std::string ascii_line(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

// The JSON with one member on each line. Each level has `indent` more blanks before it. No newline at the
// end.
inline std::string indented(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace penstock
