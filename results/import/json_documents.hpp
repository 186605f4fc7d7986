// Finds the JSON in the output of a program: one object, or several, with other text around them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/json.hpp"

namespace penstock {

struct JsonDocument {
  Json json;
  std::string_view text;  // a part of the text that was searched
};

// All objects in `text`. The first begins a line; the next begin a line or follow directly. If the text is
// one array, its objects are returned, each with the text of the whole array. NaN and infinity, which JSON
// does not allow, become null. Appends to `faults` where and why an object cannot be parsed; after many it
// gives up.
std::vector<JsonDocument> json_documents(std::string_view text, std::vector<std::string>& faults);

// Whether the text is complete JSON of any program, or begins with a line of JSON.
bool is_json(std::string_view text);
// Where and why the JSON parser stopped, such as "byte 2001, at the end: invalid number"; "" if all of the
// text is JSON. What is printed before an object that begins a line does not count.
std::string json_fault(std::string_view text);

}  // namespace penstock
