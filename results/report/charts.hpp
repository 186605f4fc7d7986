// Charts as data for the page's script. This code decides what a chart shows; the script only draws it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "results/cells/cells.hpp"
#include "results/record/record.hpp"

namespace penstock::report {

enum class Stroke { solid, dashed, dotted, dash_dotted };

struct ChartSeries {
  std::string label;
  size_t colour = 0;  // index into the page's palette; a tier has the same colour in every chart
  Stroke stroke = Stroke::solid;
  bool has_marks = true;
  std::vector<std::optional<double>> y;  // the value at each x
  // The lower end of the range at each x, or empty if there are no ranges.
  std::vector<std::optional<double>> low;
  std::vector<std::optional<double>> high;
  // What the range at each x is. True: a 95% interval of the median. False: from the lowest to the highest
  // repeat.
  std::vector<bool> is_interval = {};
  std::optional<size_t> mark = {};  // shape of the marks; absent: the shape that belongs to the colour
};

struct Chart {
  std::string id;  // id of the chart's element on the page; only PageState::add_chart() sets it
  std::string title;
  std::string summary;  // text for screen readers
  std::string x_label;
  std::string y_label;
  bool x_is_log2 = false;  // the x axis is logarithmic to base 2, with a tick at every value
  // Half as high as other charts, because it is shown above a chart with the same x axis.
  bool half_height = false;
  bool y_is_logarithmic = false;  // the y axis is logarithmic when the page opens; the reader may switch
  std::vector<double> x;
  std::vector<std::string> x_names = {};  // the tick at each x, if it is not the number
  std::vector<ChartSeries> series;
  // The same lines in another unit, to which the reader can switch: samples/s in place of MiB/s. Empty if
  // there is none.
  std::string other_y_label = {};
  std::vector<ChartSeries> other_series = {};
};

Json chart_json(const Chart& chart);
// The HTML element in which the script draws `chart` and lists its numbers. `buttons` (finished HTML) follow
// the title.
std::string chart_html(const Chart& chart, const std::string& buttons);

// How many bytes one unit of rate_unit() has.
double chart_unit(const Output& output);

// The colour of a tier, as its index in `tiers`. A new tier is added to `tiers`. So each tier keeps its
// colour on the whole page.
size_t colour_of(std::vector<std::string>& tiers, const std::string& tier);

// A line of the chart that series_chart() makes: payload bytes per second over time, of one record. A chart
// has at most eight lines.
struct NamedSeries {
  std::string label;
  size_t colour = 0;
  const Series* series = nullptr;
};
Chart series_chart(const std::vector<NamedSeries>& rows, const Output& output);

}  // namespace penstock::report
