#include "results/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "io_backends/base/build_info.hpp"
#include "io_backends/base/units.hpp"
#include "results/cells.hpp"
#include "results/report/assets.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"
#include "results/table.hpp"
#include "results/verdicts_parts.hpp"

namespace penstock::report {
namespace {

std::string describe_set(const std::vector<Record>& records) {
  std::set<std::string> commands, hosts, days;
  for (const Record& record : records) {
    commands.insert(record.command);
    if (const std::string host = environment_text(record, "host"); !host.empty()) hosts.insert(host);
    if (record.started.size() >= 10) days.insert(record.started.substr(0, 10));
  }
  std::string text =
      fmt::format("{} record{} of {}", format_count(records.size()), records.size() == 1 ? "" : "s",
                  verdicts::enumerate({commands.begin(), commands.end()}));
  if (!hosts.empty()) text += " on " + verdicts::enumerate({hosts.begin(), hosts.end()}, 3);
  if (days.size() == 1) text += ", " + *days.begin();
  if (days.size() > 1) text += ", " + *days.begin() + " to " + *days.rbegin();
  return text;
}

// What was read, from the corpora that the records name.
std::string describe_corpora(const std::vector<Record>& records, const Output& output) {
  std::vector<std::string> corpora;
  for (const Record& record : records) {
    const auto samples = record.corpus.find("samples");
    const auto bytes = record.corpus.find("bytes");
    if (samples == record.corpus.end() || bytes == record.corpus.end() || !samples->is_number_unsigned() ||
        !bytes->is_number_unsigned())
      continue;
    std::string text =
        fmt::format("{}: {} samples, {}", corpus_name(record), format_count(samples->get<std::uint64_t>()),
                    format_bytes(bytes->get<double>(), output));
    if (std::find(corpora.begin(), corpora.end(), text) == corpora.end()) corpora.push_back(std::move(text));
  }
  return verdicts::enumerate(corpora, 3);
}

std::string header_html(const std::string& title, const std::vector<Record>& records,
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
      escape(title) + "</h1>\n<p class=\"subtitle\">" + escape(describe_set(records)) + "</p>\n";
  if (const std::string corpora = describe_corpora(records, state.output); !corpora.empty())
    out += "<p class=\"subtitle\">" + escape(corpora) + "</p>\n";
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
        "<p id=\"no-charts\">This program was built without the chart library, so the tables stand alone. "
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

std::string PageState::place(Chart chart) {
  chart.id = fmt::format("chart-{}", charts.size() + 1);
  charts.push_back(std::move(chart));
  return chart_library_js.empty() ? "" : chart_html(charts.back());
}

std::string PageState::open_section(std::string_view id, std::string_view title, std::string_view lead) {
  contents.emplace_back(id, title);
  std::string out = fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-title\"><h2 id=\"{0}-title\">{1}</h2>\n", id, escape(title));
  if (!lead.empty()) out += "<p class=\"lead\">" + escape(lead) + "</p>\n";
  return out;
}

std::string render_page(const RecordSet& set, const Output& output, const std::string& title) {
  std::vector<Record> records;
  std::vector<std::string> origins;
  Json raw = Json::array();
  for (const StoredRecord& stored : set.records) {
    records.push_back(stored.record);
    origins.push_back(fmt::format("{}:{}", stored.file.filename().string(), stored.line));
    raw.push_back(to_json(stored.record));
  }
  PageState state;
  state.output = output;
  // One after another: the order decides colours, chart numbers and contents.
  std::string body = headline_section(records, set.problems, state);
  body += read_section(records, state);
  body += train_section(records, state);
  body += saving_section(records, state);
  body += series_section(records, state);
  body += other_section(records, state);
  body += environment_section(records, state);
  body += records_section(records, origins, state);
  Json charts = Json::array();
  if (!chart_library_js.empty())
    for (const Chart& chart : state.charts) charts.push_back(chart_json(chart));
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
  page += "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#findings\">Skip to the findings</a>\n";
  page += header_html(title, records, state) + "<main class=\"wide\">\n" + body + "</main>\n" + footer_html();
  page +=
      "<dialog id=\"raw\" aria-label=\"Raw record\"><form "
      "method=\"dialog\"><button>Close</button></form><pre "
      "tabindex=\"0\"></pre></dialog>\n<div id=\"live\" class=\"unseen\" role=\"status\"></div>\n";
  page += data_script("charts", charts) + data_script("records-data", raw);
  page += fmt::format("<script nonce=\"{}\">\n", nonce);
  page += chart_library_js;
  page += "\n";
  page += page_js;
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace penstock::report
