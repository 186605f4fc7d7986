// What the sections of a page share while it is written: colours, charts, the numbers behind every picture,
// what is said, and the places that links lead to.
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
  std::vector<std::string> tiers;                             // those that have a colour
  std::vector<Chart> charts;                                  // that the script will draw
  std::vector<Sheet> sheets;                                  // of every picture, in order
  std::vector<std::pair<std::string, std::string>> contents;  // id and title of every section
  std::vector<Sentence> said;                                 // of all records
  const Record* first = nullptr;                              // of the array that holds them

  std::string place(Chart chart);  // remembers it and returns its place
  // The place of a chart that has lines, and the table with its numbers next to it.
  std::string place_with(Chart chart, const HtmlTable& table);
  // Bars as they stand on the page; "" where nothing lasts.
  std::string place_bars(const std::string& caption, const std::vector<Bar>& bars);
  // Remembers the numbers of a picture that needs no script, and returns the button that saves them.
  std::string keep(std::string_view title, std::vector<std::string> columns,
                   std::vector<std::vector<std::string>> rows);

  // `answer` (finished HTML) stands first in it, then `lead`: how to read what follows.
  std::string open_section(std::string_view id, std::string_view title, std::string_view lead,
                           const std::string& answer = "");
  // The first sentence of each kind, a finding before a caution, with a link to what it rests on; "" without
  // any.
  std::string answers(std::initializer_list<std::string_view> kinds) const;

  std::size_t number_of(const Record& record) const;  // on the page, from 1
  Markup record_link(const Record& record) const;
};

// A rate without its unit; "-" without one.
std::string rate_or_dash(const std::optional<double>& bytes_per_s, const Output& output);

// One sentence that answers, and where its numbers stand.
std::string answer_html(std::string_view words, std::string_view anchor,
                        std::string_view link_text = "numbers");

// A number of the first screen with its unit and what it is.
std::string tile_html(std::string_view value, std::string_view unit, std::string_view label,
                      std::size_t colour);

std::string verdict_title(Verdict verdict);  // "not cold"
// The same with a mark: never by colour alone.
std::string verdict_html(Verdict verdict);
std::string_view verdict_class(Verdict verdict);

// A part of a section below a heading that links lead to. Those behind the first eight fold away, so that a
// page of hundreds still opens at once.
std::string part_html(std::size_t index, std::string_view anchor, std::string_view title,
                      const std::string& body);

// "1 to 25, 27", each a link to its row; numbers that rise.
std::string record_ranges_html(const std::vector<std::size_t>& numbers);

}  // namespace penstock::report
