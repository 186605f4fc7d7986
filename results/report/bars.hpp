// Stacked bars as plain HTML: they need neither script nor library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::report {

struct Segment {
  std::string_view kind;  // a class of the page: "busy", "starved", "blocked"
  std::string_view words;
  double seconds = 0;
};
struct Bar {
  std::string label;
  std::vector<Segment> segments;
};

// One scale for all; the first bar's segments make the legend. `buttons` (finished HTML) stand behind the
// caption. "" where nothing lasts.
std::string bars_html(const std::string& caption, const std::vector<Bar>& bars, const std::string& buttons);

}  // namespace penstock::report
