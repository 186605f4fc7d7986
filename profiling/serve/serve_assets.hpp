// Text that CMake builds into the program: the parts of the page.
#pragma once

#include <string_view>

namespace penstock {

extern const std::string_view serve_html;  // of the body
extern const std::string_view serve_css;
extern const std::string_view serve_js;

}  // namespace penstock
