// Charts as data for the page's script. This code decides what a chart shows; the script only draws it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "results/record/record.hpp"
#include "results/record/statistics.hpp"

namespace penstock::report {

enum class Stroke { solid, dashed, dotted, dash_dotted };

struct ChartSeries {
  std::string label;
  size_t colour = 0;  // index into the page's palette; a tier has the same colour in every chart
  Stroke stroke = Stroke::solid;
  bool has_marks = true;
  std::vector<std::optional<double>> y;    // one for each x
  std::vector<std::optional<double>> low;  // the range at each x, or empty
  std::vector<std::optional<double>> high;
  // For each x: true if the range is a 95% interval of the median, false if it is lowest to highest.
  std::vector<bool> is_interval = {};
  std::optional<size_t> mark = {};  // shape of the marks, if not the one of the colour
};

struct Chart {
  std::string id;  // id of the chart on the page; set by PageState::add_chart(), never from a record
  std::string title;
  std::string summary;  // read by screen readers
  std::string x_label;
  std::string y_label;
  bool x_is_log2 = false;         // the x axis is logarithmic to base 2, with a tick at every value
  bool half_height = false;       // half as high as other charts, to be above one with the same x axis
  bool y_is_logarithmic = false;  // the y axis is logarithmic at first; the reader may switch
  std::vector<double> x;
  std::vector<ChartSeries> series;
};

Json chart_json(const Chart& chart);
// The HTML element in which the script draws `chart` and lists its numbers. `buttons` (finished HTML) follow
// the title.
std::string chart_html(const Chart& chart, const std::string& buttons);

// Bytes in one unit of rate_unit().
double chart_unit(const Output& output);

// The colour of a tier: tiers are numbered in order of appearance, so that each keeps its colour. Adds a new
// tier to `tiers`.
size_t colour_of(std::vector<std::string>& tiers, const std::string& tier);

// The range of a point's repeats: a 95% interval of the median if there are enough repeats, else lowest to
// highest.
struct RepeatRange {
  Interval range;
  bool is_interval = false;
};
RepeatRange repeat_range(const Metric& metric);

// A chart of payload bytes per second over time, one line for each record that has a series; at most eight
// lines.
struct NamedSeries {
  std::string label;
  size_t colour = 0;
  const Series* series = nullptr;
};
Chart series_chart(const std::vector<NamedSeries>& rows, const Output& output);

}  // namespace penstock::report
