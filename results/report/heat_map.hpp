// A heat map as a table: numbers in cells, each with a background colour for its size. The numbers alone say
// everything, so the map is readable without colour.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/report/page_state.hpp"

namespace penstock::report {

struct HeatCell {
  std::optional<double> value;
  std::string text;                // the number as text
  const Record* record = nullptr;  // the record that contains the number
};

struct HeatMap {
  std::string title;
  std::string row_label;  // "threads"
  std::vector<std::string> column_names;
  std::vector<std::string> row_names;
  std::vector<std::vector<HeatCell>> cells;  // one vector for each row
  double highest = 1;                        // the value that gets the brightest colour; 0 gets the darkest
  std::string lowest_text;
  std::string highest_text;
};

// The map as HTML. The colours are ten steps of cividis, whose brightness rises evenly for all readers, also
// colour-blind ones. (Nunez, Anderton, Renslow: Optimizing colormaps with consideration for color vision
// deficiency, 2018.)
std::string heat_map_html(const HeatMap& map, PageState& state);

}  // namespace penstock::report
