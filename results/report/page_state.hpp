// What the sections of a page share while they are made: colours, charts, the numbers of every picture, the
// sentences, and the targets of links.
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
  // Tiers that have a colour; the index of a tier is its colour.
  std::vector<std::string> tiers;
  std::vector<Chart> charts;  // charts that the script draws
  // The numbers of every picture, in the order of the page.
  std::vector<Sheet> sheets;
  std::vector<std::pair<std::string, std::string>> contents;  // id and title of every section
  std::vector<Sentence> sentences;                            // the sentences about all records
  // Pointer to the first of all records, which are in one array; number_of() needs it.
  const Record* first_record = nullptr;

  // Stores the chart and returns the HTML element in which the script draws it.
  std::string add_chart(Chart chart);
  // Stores a chart, and returns its HTML next to the table with its numbers. If the chart has no lines, only
  // the table is returned.
  std::string add_chart_with_table(Chart chart, const HtmlTable& table);
  // The HTML of bars_html(), with a button that saves the numbers as CSV. "" if all bars have length 0.
  std::string add_bars(const std::string& caption, const std::vector<Bar>& bars);
  // Stores the numbers of a picture that is drawn without the script. Returns the button that saves them as
  // CSV.
  std::string add_sheet(std::string_view title, std::vector<std::string> columns,
                        std::vector<std::vector<std::string>> rows);

  // The HTML at the start of a section: its heading, then `answer` (finished HTML), then `lead`, a text on
  // how to read the section.
  std::string open_section(std::string_view id, std::string_view title, std::string_view lead,
                           const std::string& answer = "");
  // The sentences that answer the questions of a section, each with a link to its numbers. `kinds` are kinds
  // of sentences. The answer to each kind is its first finding, or its first caution if it has no finding. ""
  // if there is no answer.
  std::string answers(std::initializer_list<std::string_view> kinds) const;

  size_t number_of(const Record& record) const;  // the number under which the page lists the record, from 1
  Markup record_link(const Record& record) const;
};

// A rate as a number without its unit; "-" if it is absent.
std::string rate_or_dash(const std::optional<double>& bytes_per_s, const Output& output);

// One sentence that answers the question of a section, with a link to its numbers.
std::string answer_html(std::string_view sentence, std::string_view anchor,
                        std::string_view link_text = "numbers");

// A tile (box) on the first screen: a number, its unit, and what the number is.
std::string tile_html(std::string_view value, std::string_view unit, std::string_view label, size_t colour);

std::string verdict_title(Verdict verdict);  // "not cold"
// The name of a verdict as HTML. A mark is added, so that the colour is not the only sign.
std::string verdict_html(Verdict verdict);
std::string_view verdict_class(Verdict verdict);

// A part of a section, with a heading that links can point to. Only the first four parts of a section are
// unfolded at first, so that a page with hundreds of parts opens quickly.
std::string part_html(size_t index, std::string_view anchor, std::string_view title, const std::string& body);

// Record numbers as text, "1 to 25, 27". Each number is a link to its row in the table of records. `numbers`
// must be sorted.
std::string record_ranges_html(const std::vector<size_t>& numbers);

}  // namespace penstock::report
