#include "results/report/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "io_backends/core/cli/table.hpp"
#include "results/record/statistics.hpp"
#include "results/report/html.hpp"

namespace penstock::report {
namespace {

Json numbers_json(const std::vector<std::optional<double>>& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(value && std::isfinite(*value) ? Json(*value) : Json());
  return list;
}

// The script's name for each Stroke, in the order of the enum.
constexpr std::string_view kStrokes[] = {"solid", "dashed", "dotted", "dash_dotted"};

Json series_json(const std::vector<ChartSeries>& all) {
  Json series = Json::array();
  for (const ChartSeries& one : all) {
    series.push_back(Json{{"label", one.label},
                          {"colour", one.colour},
                          {"stroke", kStrokes[size_t(one.stroke)]},
                          {"marks", one.has_marks},
                          {"y", numbers_json(one.y)},
                          {"low", numbers_json(one.low)},
                          {"high", numbers_json(one.high)}});
    if (one.mark) series.back()["mark"] = *one.mark;
    if (!one.is_interval.empty()) series.back()["sure"] = one.is_interval;
  }
  return series;
}

}  // namespace

Json chart_json(const Chart& chart) {
  Json json{{"id", chart.id},
            {"title", chart.title},
            {"x_label", chart.x_label},
            {"y_label", chart.y_label},
            {"x_doubles", chart.x_is_log2},
            {"low", chart.half_height},
            {"logarithmic", chart.y_is_logarithmic},
            {"x", chart.x},
            {"series", series_json(chart.series)}};
  if (!chart.x_names.empty()) json["x_names"] = chart.x_names;
  if (!chart.other_series.empty())
    json["other"] = Json{{"y_label", chart.other_y_label}, {"series", series_json(chart.other_series)}};
  return json;
}

std::string chart_html(const Chart& chart, const std::string& buttons) {
  return "<figure class=\"chart\" id=\"" + escape(chart.id) + "\"><figcaption><span>" + escape(chart.title) +
         "</span>" + buttons +
         "</figcaption>\n<div class=\"plot\" tabindex=\"0\" role=\"img\" aria-label=\"" +
         escape(chart.summary) +
         "\"></div>\n<div class=\"legend\"></div>\n"
         "<details class=\"numbers script-only\"><summary>Numbers of this "
         "chart</summary></details>\n</figure>\n";
}

double chart_unit(const Output& output) {
  return output.si_units ? 1e6 : 1048576.0;
}

size_t colour_of(std::vector<std::string>& tiers, const std::string& tier) {
  const auto at = std::find(tiers.begin(), tiers.end(), tier);
  if (at != tiers.end()) return size_t(at - tiers.begin());
  tiers.push_back(tier);
  return tiers.size() - 1;
}

Chart series_chart(const std::vector<NamedSeries>& rows, const Output& output) {
  Chart chart;
  chart.title = "Payload over time";
  chart.x_label = "seconds";
  chart.y_label = rate_unit(output);
  chart.summary = "Bytes delivered in each interval of the measurement; the table next to it summarises them";
  std::set<double> times;
  for (const NamedSeries& row : rows)
    for (const double end_s : row.series->ends_s()) times.insert(end_s);
  chart.x.assign(times.begin(), times.end());
  for (const NamedSeries& row : rows) {
    ChartSeries line{row.label, row.colour, Stroke::solid, row.series->values.size() < 40, {}, {}, {}};
    line.y.resize(chart.x.size());
    const std::vector<double> rates = row.series->rates();
    const std::vector<double> ends_s = row.series->ends_s();
    for (size_t i = 0; i < rates.size(); ++i) {
      const auto at = std::lower_bound(chart.x.begin(), chart.x.end(), ends_s[i]) - chart.x.begin();
      line.y[size_t(at)] = rates[i] / chart_unit(output);
    }
    chart.series.push_back(std::move(line));
  }
  return chart;
}

}  // namespace penstock::report
