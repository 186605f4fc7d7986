// The state that the sections of a page share while it is written: colours, charts, the numbers of every
// picture, the sentences, and the targets of links.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/record.hpp"
#include "results/report/bars.hpp"
#include "results/report/charts.hpp"
#include "results/report/html.hpp"
#include "results/report/sheets.hpp"

namespace penstock::report {

struct PageState {
  Output output;
  std::vector<std::string> tiers;                             // the index of a tier is its colour
  std::vector<Chart> charts;                                  // drawn by the script
  std::vector<Sheet> sheets;                                  // the numbers of every picture, in order
  std::vector<std::pair<std::string, std::string>> contents;  // id and title of every section
  std::vector<Sentence> sentences;                            // the sentences about all records
  const Record* first_record = nullptr;                       // the first element of the array of all records

  std::string add_chart(Chart chart);  // stores the chart and returns its HTML element
  // The HTML of a chart next to the table with its numbers. Without lines only the table.
  std::string add_chart_with_table(Chart chart, const HtmlTable& table);
  // The HTML of bars_html() with a button that saves the numbers; "" if all bars have length 0.
  std::string add_bars(const std::string& caption, const std::vector<Bar>& bars);
  // Stores the numbers of a picture that needs no script. Returns the button that saves them as CSV.
  std::string add_sheet(std::string_view title, std::vector<std::string> columns,
                        std::vector<std::vector<std::string>> rows);

  // Starts a section: its heading, then `answer` (finished HTML), then `lead`, which explains how to read the
  // section.
  std::string open_section(std::string_view id, std::string_view title, std::string_view lead,
                           const std::string& answer = "");
  // For each kind the first finding, else the first caution, with a link to its numbers. "" if there is none.
  std::string answers(std::initializer_list<std::string_view> kinds) const;

  size_t number_of(const Record& record) const;  // the number of the record on the page, from 1
  Markup record_link(const Record& record) const;
};

// A rate without its unit; "-" if it is absent.
std::string rate_or_dash(const std::optional<double>& bytes_per_s, const Output& output);

// One sentence that answers the question of a section, with a link to its numbers.
std::string answer_html(std::string_view sentence, std::string_view anchor,
                        std::string_view link_text = "numbers");

// A tile of the first screen: a number, its unit and what it is.
std::string tile_html(std::string_view value, std::string_view unit, std::string_view label, size_t colour);

std::string verdict_title(Verdict verdict);  // "not cold"
// The title of a verdict as HTML, with a mark: colour alone is never the only sign.
std::string verdict_html(Verdict verdict);
std::string_view verdict_class(Verdict verdict);

// A part of a section with a heading that links can point to. After the first eight, parts are folded, so
// that a page with hundreds of them opens quickly.
std::string part_html(size_t index, std::string_view anchor, std::string_view title, const std::string& body);

// "1 to 25, 27": each number is a link to its row. `numbers` must be sorted.
std::string record_ranges_html(const std::vector<size_t>& numbers);

}  // namespace penstock::report
