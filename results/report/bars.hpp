// Draws stacked bars as plain HTML, without script or chart library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::report {

struct Segment {
  std::string_view kind;  // a CSS class of the page: "busy", "starved", "blocked"
  std::string_view label;
  double seconds = 0;
};
struct Bar {
  std::string label;
  std::vector<Segment> segments;
};

// Draws the bars, all on one scale. The segments of the first bar make the legend. `buttons` (finished HTML)
// follow the caption. "" if all bars have length 0.
std::string bars_html(const std::string& caption, const std::vector<Bar>& bars, const std::string& buttons);

}  // namespace penstock::report
