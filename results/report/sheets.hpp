// Sheets: the numbers of every picture of the page, as tables for other programs. They are written as CSV
// (RFC 4180).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/report/charts.hpp"

namespace penstock::report {

// The table with the numbers of one picture of the report. The reader can save it as CSV.
struct Sheet {
  std::string id;    // id of the picture's element on the page; it never comes from a record
  std::string name;  // name of the file without ".csv": "bandwidth-against-threads-cold"
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  bool is_of_chart = false;  // the picture is a chart, so the script already has these numbers
};

// The table as CSV. Lines end in CR LF. A field that contains a comma, a quote or a line break is quoted.
std::string csv_text(const Sheet& sheet);

// Turns text into a part of a file name: lower-case letters, digits and dashes, at most 120 characters. Of a
// path in the text, only the last part remains.
std::string file_name_part(std::string_view words);
// The name of the sheet of a picture with this title. It has no running number, so that scripts find the file
// again when a report gets more pictures. Only if one of `others` already has the name, "-2" is added.
std::string sheet_name(std::string_view title, std::span<const Sheet> others);

// The shortest text from which exactly this number can be read back.
std::string plain_number(double value);

// The numbers of a chart, one row for each x. A series with a range also has the ends of the range and its
// kind ("95% of the median", "lowest to highest").
Sheet chart_sheet(const Chart& chart);

// The button that saves a sheet as CSV. It needs the script.
std::string csv_button(const Sheet& sheet);

}  // namespace penstock::report
