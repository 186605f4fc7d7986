// Sheets: the numbers of every picture of the page, as tables for other programs. They are written as CSV
// (RFC 4180).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/record/store.hpp"
#include "results/report/charts.hpp"

namespace penstock::report {

// The table with the numbers of one picture of the report. The reader can save it as CSV.
struct Sheet {
  std::string id;    // id of the picture's element on the page; it never comes from a record
  std::string name;  // name of the file: "chart-1-bandwidth-against-threads-cold"
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  bool is_of_chart = false;  // the picture is a chart, so the script already has these numbers
};

// The table as CSV. Lines end in CR LF. A field that contains a comma, a quote or a line break is quoted.
std::string csv_text(const Sheet& sheet);

// Turns text into a part of a file name: lower-case letters, digits and dashes, at most 60 characters.
std::string file_name_part(std::string_view words);

// The shortest text from which exactly this number can be read back.
std::string plain_number(double value);

// The numbers of a chart, one row for each x. A series with a range also has the ends of the range and its
// kind ("95% of the median", "lowest to highest").
Sheet chart_sheet(const Chart& chart);

// All metrics of all records, one row for each: the median of its samples, the lowest and the highest, and
// the record's parameters as JSON. A record without samples has one row, with its verdict.
Sheet records_sheet(const std::vector<StoredRecord>& records);

// The button that saves a sheet as CSV. It needs the script.
std::string csv_button(const Sheet& sheet);

}  // namespace penstock::report
