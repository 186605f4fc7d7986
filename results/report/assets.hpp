// Text that CMake builds into the program: the page's style and script, and the chart library if the build
// found it.
#pragma once

#include <string_view>

namespace penstock::report {

extern const std::string_view page_css;
extern const std::string_view page_js;

// The chart library uPlot; empty if the build did not find it.
extern const std::string_view chart_library_js;
extern const std::string_view chart_library_css;
extern const std::string_view chart_library_licence;
extern const std::string_view chart_library_version;

}  // namespace penstock::report
