// The parts of the page of `penstock profile serve`. CMake builds the files with these parts into the
// program.
#pragma once

#include <string_view>

namespace penstock {

extern const std::string_view serve_html;  // the content of the page's <body>
extern const std::string_view serve_css;
extern const std::string_view serve_js;

}  // namespace penstock
