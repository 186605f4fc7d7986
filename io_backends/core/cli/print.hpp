// What commands print. An error stays in the stream; the main program reports that of stdout at the end.
#pragma once

#include <cstdio>
#include <string_view>

#include "io_backends/core/json_text.hpp"

namespace penstock {

void print_text(std::string_view text, std::FILE* to = stdout);
// Prints JSON on one line of stdout. Bytes that are not UTF-8 become U+FFFD.
void print_json(const Json& json);

}  // namespace penstock
