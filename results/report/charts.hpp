// What the page's script draws: charts as data. The script knows how to draw, this side knows what.
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
  std::size_t colour = 0;  // index into the page's palette: one a tier, the same in every chart
  Stroke stroke = Stroke::solid;
  bool marks = true;
  std::vector<std::optional<double>> y;    // one for each x
  std::vector<std::optional<double>> low;  // the range at each x, or empty
  std::vector<std::optional<double>> high;
  std::vector<bool> sure = {};  // for each x: the range covers the median with 95%; else it is of the repeats
  std::optional<std::size_t> mark = {};  // another than the colour's own
};

struct Chart {
  std::string id;  // of its place on the page; ours, never from a record
  std::string title;
  std::string summary;  // for those who cannot see it
  std::string x_label;
  std::string y_label;
  bool x_doubles = false;    // x is drawn by its logarithm to base 2, with a tick at every value
  bool low = false;          // half as high as others: stands above one with the same x
  bool logarithmic = false;  // y starts as powers of ten; the reader may switch
  std::vector<double> x;
  std::vector<ChartSeries> series;
};

Json chart_json(const Chart& chart);
// The place where the script draws `chart` and lists its numbers; `buttons` (finished HTML) stand behind its
// title.
std::string chart_html(const Chart& chart, const std::string& buttons);

// Bytes in one unit of rate_unit().
double chart_unit(const Output& output);

// A number for each tier name in order of appearance, so that a tier keeps its colour.
std::size_t colour_of(std::vector<std::string>& tiers, const std::string& tier);

// The range that a point's repeats leave for their median: 95% where they are enough, else all of them.
struct Band {
  Interval range;
  bool sure = false;
};
Band band_of(const Metric& metric);

// payload bytes a second over time for records that kept a series; at most eight lines.
struct NamedSeries {
  std::string label;
  std::size_t colour = 0;
  const Series* series = nullptr;
};
Chart series_chart(const std::vector<NamedSeries>& rows, const Output& output);

}  // namespace penstock::report
