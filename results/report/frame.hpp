// What every page of ours is: one HTML file with its style, script and charts in it, that asks no network for
// anything (its content security policy forbids it) and stays readable without script.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "results/report/charts.hpp"
#include "results/report/sheets.hpp"

namespace penstock::report {

struct PageFrame {
  std::string title;
  std::vector<std::string> subtitles;                         // lines below it
  std::vector<std::pair<std::string, std::string>> contents;  // id and title of every section, in order
  std::string body;                                           // finished HTML
  std::vector<Chart> charts;                                  // that the body has places for
  std::vector<Sheet> sheets = {};                             // the numbers of its pictures
  std::string record_lines = {};  // raw ones, script_json() a line, for the page's buttons
};

// Deterministic but for the nonce of the script policy.
std::string frame_page(const PageFrame& frame);

}  // namespace penstock::report
