// Prints what commands write to stdout and other streams. If a write fails, the stream keeps the error
// (ferror()), and the main program reports an error of stdout before it exits.
#pragma once

#include <cstdio>
#include <string_view>

#include "io_backends/core/json.hpp"

namespace penstock {

void print_text(std::string_view text, std::FILE* to = stdout);
// Prints JSON on one line of stdout. Bytes that are not UTF-8 become U+FFFD.
void print_json(const Json& json);

}  // namespace penstock
