// What commands print to stdout. An error stays in the stream; the main program reports it at the end.
#pragma once

#include <string_view>

#include "io_backends/core/json_text.hpp"

namespace penstock {

void print_text(std::string_view text);
// In one line; bytes that are no UTF-8 become U+FFFD.
void print_json(const Json& json);

}  // namespace penstock
