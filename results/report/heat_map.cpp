#include "results/report/heat_map.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace penstock::report {
namespace {

constexpr int kColourSteps = 10;

int colour_step(double value, double highest) {
  if (highest <= 0) return 0;
  return std::clamp(int(std::clamp(value / highest, 0.0, 1.0) * kColourSteps), 0, kColourSteps - 1);
}

std::string scale_html(const HeatMap& map) {
  std::string steps;
  for (int step = 0; step < kColourSteps; ++step) steps += fmt::format("<i class=\"heat-{}\"></i>", step);
  return "<p class=\"heat-scale\" aria-hidden=\"true\"><span>" + escape(map.lowest_text) + "</span>" + steps +
         "<span>" + escape(map.highest_text) + "</span></p>\n";
}

}  // namespace

std::string heat_map_html(const HeatMap& map, PageState& state) {
  std::vector<HtmlTable::Column> columns{{map.row_label}};
  std::vector<std::string> names{map.row_label};
  for (const std::string& name : map.column_names) {
    columns.push_back({name});
    names.push_back(name);
  }
  HtmlTable table(map.title, columns);
  std::vector<std::vector<std::string>> rows;
  for (size_t row = 0; row < map.cells.size(); ++row) {
    std::vector<Markup> row_cells{text(map.row_names[row])};
    rows.push_back({map.row_names[row]});
    for (const HeatCell& cell : map.cells[row]) {
      rows.back().push_back(cell.value ? plain_number(*cell.value) : "");
      if (!cell.value) {
        row_cells.push_back({"-", "heat-none"});
        continue;
      }
      Markup mark = text(cell.text);
      if (cell.record != nullptr)
        mark.html = fmt::format("<a href=\"#record-{}\">{}</a>", state.number_of(*cell.record), mark.html);
      mark.cell_class = fmt::format("heat-{}", colour_step(*cell.value, map.highest));
      row_cells.push_back(std::move(mark));
    }
    table.row(std::move(row_cells));
  }
  table.set_class_and_button("heat", state.add_sheet(map.title, std::move(names), std::move(rows)));
  return "<div class=\"heat-map\">\n" + table.html() + scale_html(map) + "</div>\n";
}

}  // namespace penstock::report
