#include "results/report/frame.hpp"

#include <fmt/format.h>

#include <string_view>

#include "io_backends/core/build_info.hpp"
#include "io_backends/core/random.hpp"
#include "results/record/store.hpp"
#include "results/report/assets.hpp"
#include "results/report/html.hpp"

namespace penstock::report {
namespace {

std::string header_html(const std::string& title, const std::vector<std::string>& subtitles,
                        const PageState& state) {
  std::string out =
      "<header class=\"top\"><div class=\"wide\">\n"
      "<div class=\"brand\"><svg viewBox=\"0 0 32 32\" width=\"28\" height=\"28\" aria-hidden=\"true\"><path "
      "d=\"M3 "
      "7h7l9 14h10\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"7\" stroke-linejoin=\"round\" "
      "opacity=\".25\"/><path d=\"M3 7h7l9 14h10\" fill=\"none\" stroke=\"currentColor\" "
      "stroke-width=\"2.5\" "
      "stroke-linejoin=\"round\"/></svg><span>Penstock</span>"
      "<button type=\"button\" id=\"theme\" class=\"script-only\" aria-label=\"Colours: as the system; press "
      "to "
      "change\">Colours: system</button></div>\n<h1>" +
      escape(title) + "</h1>\n";
  for (const std::string& subtitle : subtitles) out += "<p class=\"subtitle\">" + escape(subtitle) + "</p>\n";
  out += "<nav aria-label=\"Contents\"><ul>\n";
  for (const auto& [id, name] : state.contents)
    out += "<li><a href=\"#" + id + "\">" + escape(name) + "</a></li>\n";
  return out + "</ul></nav></div></header>\n";
}

std::string footer_html() {
  std::string out = "<footer><div class=\"wide\">\n<p>Written by penstock " + escape(build_info().version) +
                    ". This page holds everything that it shows and asks no network for anything.</p>\n";
  if (chart_library_js.empty())
    out +=
        "<p id=\"no-charts\">This program was built without the chart library, so the tables have no charts. "
        "<code>ci/fetch_chart_library</code> and a new build add the charts.</p>\n";
  else
    out += "<details><summary>Charts by uPlot " + escape(chart_library_version) +
           "; its licence</summary><pre>" + escape(chart_library_licence) + "</pre></details>\n";
  return out + "</div></footer>\n";
}

std::string data_script(std::string_view id, const Json& json) {
  return fmt::format("<script type=\"application/json\" id=\"{}\">{}</script>\n", id, script_json(json));
}

}  // namespace

std::string frame_page(const std::string& title, const std::vector<std::string>& subtitles,
                       std::string_view body, const PageState& state, std::string_view record_lines) {
  Json charts = Json::array();
  if (!chart_library_js.empty())
    for (const Chart& chart : state.charts) charts.push_back(chart_json(chart));
  Json sheets = Json::object();
  for (const Sheet& sheet : state.sheets)
    if (!sheet.is_of_chart) sheets[sheet.id] = csv_text(sheet);
  const std::string nonce = random_id(32);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'nonce-{0}'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{1}</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style>\n",
      nonce, escape(title));
  page += chart_library_css;
  page += page_css;
  page += "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#";
  page += state.contents.empty() ? "" : state.contents.front().first;
  page += "\">Skip to the findings</a>\n";
  page += header_html(title, subtitles, state) + "<main class=\"wide\">\n";
  page += body;
  page += "</main>\n" + footer_html();
  page +=
      "<dialog id=\"raw\" aria-label=\"Raw record\"><form "
      "method=\"dialog\"><button>Close</button></form><pre "
      "tabindex=\"0\"></pre></dialog>\n<div id=\"live\" class=\"unseen\" role=\"status\"></div>\n";
  page += data_script("charts", charts) + data_script("sheets", sheets);
  page +=
      fmt::format("<script type=\"application/x-ndjson\" id=\"records-data\">{}</script>\n", record_lines);
  page += fmt::format("<script nonce=\"{}\">\n", nonce);
  page += chart_library_js;
  page += "\n";
  page += page_js;
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace penstock::report
