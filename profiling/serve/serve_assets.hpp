// The parts of the page as text, which CMake builds into the program.
#pragma once

#include <string_view>

namespace penstock {

extern const std::string_view serve_html;  // the content of the page's <body>
extern const std::string_view serve_css;
extern const std::string_view serve_js;

}  // namespace penstock
