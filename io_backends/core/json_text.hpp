// JSON as text. JSON must be UTF-8 and names of files need not be: bytes that are no UTF-8 become U+FFFD.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace penstock {

using Json = nlohmann::ordered_json;

// The JSON on one line, without a newline at the end.
inline std::string one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// one_line() in ASCII: every other character is an escape such as \u00e9.
inline std::string ascii_line(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

// The JSON with one member on each line. Each level is indented by `indent` more blanks. No newline at the
// end.
inline std::string indented(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace penstock
