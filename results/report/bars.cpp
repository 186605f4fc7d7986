#include "results/report/bars.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io_backends/core/cli/table.hpp"
#include "results/report/html.hpp"

namespace penstock::report {

std::string bars_html(const std::string& caption, const std::vector<Bar>& bars, const std::string& buttons) {
  double longest_s = 0;
  for (const Bar& bar : bars) {
    double total = 0;
    for (const Segment& segment : bar.segments) total += segment.seconds;
    longest_s = std::max(longest_s, total);
  }
  if (longest_s <= 0) return "";
  std::string out = "<figure class=\"bars\"><figcaption><span>" + escape(caption) + "</span>" + buttons +
                    "</figcaption>\n<div class=\"legend\">";
  for (const Segment& segment : bars.front().segments)
    out += "<span class=\"key\"><i class=\"segment " + std::string(segment.kind) + "\"></i>" +
           escape(segment.label) + "</span>";
  out += "</div>\n";
  for (const Bar& bar : bars) {
    std::string description = bar.label + ":";
    std::string segments;
    for (const Segment& segment : bar.segments) {
      if (segment.seconds <= 0) continue;
      const std::string text = fmt::format(" {} {}", segment.label, format_seconds(segment.seconds));
      description += text;
      segments += fmt::format("<span class=\"segment {}\" style=\"width:{:.3f}%\" title=\"{}\"></span>",
                              segment.kind, 100 * segment.seconds / longest_s, escape(bar.label + text));
    }
    out += "<div class=\"bar\"><span class=\"bar-label\">" + escape(bar.label) +
           "</span><span class=\"track\" role=\"img\" aria-label=\"" + escape(description) + "\">" +
           segments + "</span></div>\n";
  }
  return out + "<div class=\"bar-scale\"><span>0</span><span>" + escape(format_seconds(longest_s)) +
         "</span></div></figure>\n";
}

}  // namespace penstock::report
