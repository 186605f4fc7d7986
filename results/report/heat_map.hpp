// A heat map that is a table: numbers in cells, and behind them a colour that says nothing more than they do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/report/page_state.hpp"

namespace penstock::report {

struct HeatCell {
  std::optional<double> value;
  std::string words;               // the number as readers see it
  const Record* record = nullptr;  // that it comes from
};

struct HeatMap {
  std::string title;
  std::string rows_are;  // "threads"
  std::vector<std::string> column_names;
  std::vector<std::string> row_names;
  std::vector<std::vector<HeatCell>> cells;  // by row
  double full = 1;                           // the value of the brightest step; 0 is the darkest
  std::string zero_text;
  std::string full_text;
};

// Ten steps of cividis (Nunez, Anderton, Renslow: Optimizing colormaps with consideration for color vision
// deficiency, 2018), whose lightness rises evenly for all eyes.
std::string heat_map_html(const HeatMap& map, PageState& state);

}  // namespace penstock::report
