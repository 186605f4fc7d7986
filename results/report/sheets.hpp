// The numbers behind every picture of the page, as tables that other programs read: CSV as RFC 4180 has it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/report/charts.hpp"

namespace penstock::report {

struct Sheet {
  std::string id;    // of the picture on the page; ours, never from a record
  std::string name;  // of a file: "chart-1-bandwidth-against-threads-cold"
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  bool of_chart = false;  // the page's script has these numbers already
};

// Lines end in CR LF; a field with a comma, a quote or a line break is in quotes.
std::string csv_text(const Sheet& sheet);

// `words` as part of a file name: lower-case letters, digits and dashes, at most 60 of them.
std::string file_text(std::string_view words);

// The shortest digits that are this number again.
std::string plain_number(double value);

// A row for each x; of a series with a range, its ends and what they are ("95% of the median", "lowest to
// highest").
Sheet chart_sheet(const Chart& chart);

// The button that saves a sheet; needs the script.
std::string csv_button(const Sheet& sheet);

}  // namespace penstock::report
