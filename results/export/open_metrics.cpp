#include "results/export/open_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/core/utc_time.hpp"
#include "results/cells/cells.hpp"
#include "results/record/work.hpp"

namespace penstock {
namespace {

// The format allows only UTF-8. Bytes that are no UTF-8 become U+FFFD.
std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = utf8_length(text);
    out += bytes == 0 ? "\xEF\xBF\xBD" : text.substr(0, bytes);
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out;
}

std::string escaped_value(std::string_view text) {
  return with_escapes(valid_utf8(text), [](char c) {
    return std::string_view(c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : "");
  });
}

// All points of one family: labels as text -> time -> the joined metric. The time is absent for records that
// do not have a valid one.
struct ResultFamily {
  std::string help;
  std::map<OpenMetricsLabels, std::map<std::optional<std::time_t>, Metric>> series;
};

OpenMetricsLabels labels_of(const Record& record, bool has_time) {
  OpenMetricsLabels labels;
  const auto add = [&](std::string_view name, std::string value) {
    if (value.empty()) return;
    std::string unique = open_metrics_name(name);
    while (std::any_of(labels.begin(), labels.end(), [&](const auto& one) { return one.first == unique; }))
      unique += '_';
    labels.emplace_back(std::move(unique), std::move(value));
  };
  add("command", record.command);
  add("tier", measured_tier(record));
  add("host", environment_text(record, "host"));
  add("corpus", corpus_text(record, "recipe"));
  for (const std::string& name : work_parameters(record))
    if (name != "tier") add(name, work_text(record, name));
  for (const auto& [key, value] : record.label) add("label_" + key, value);
  // Points with and without a time may not be in one series.
  if (!has_time) add("started", "unknown");
  return labels;
}

void add_result_family(std::string& out, const std::string& name, const ResultFamily& family,
                       double (*value)(const Metric&)) {
  add_open_metrics_family(out, name, "gauge", family.help);
  for (const auto& [labels, points] : family.series)
    for (const auto& [time, metric] : points) add_open_metrics_sample(out, name, labels, value(metric), time);
}

}  // namespace

std::string open_metrics_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const char lower = lower_case(c);
    name += (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ? c : '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(name.begin(), '_');
  return name;
}

void add_open_metrics_family(std::string& out, std::string_view name, std::string_view type,
                             std::string_view help) {
  out += fmt::format("# TYPE {0} {1}\n# HELP {0} {2}\n", name, type, escaped_value(help));
}

void add_open_metrics_sample(std::string& out, std::string_view name, const OpenMetricsLabels& labels,
                             double value, std::optional<std::time_t> time) {
  out += name;
  for (size_t i = 0; i < labels.size(); ++i)
    out += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first, escaped_value(labels[i].second));
  if (!labels.empty()) out += '}';
  const std::string number = std::isnan(value)   ? "NaN"
                             : std::isinf(value) ? (value > 0 ? "+Inf" : "-Inf")
                                                 : fmt::format("{}", value);
  out += " " + number + (time ? fmt::format(" {}", *time) : "") + "\n";
}

std::string open_metrics_text(const RecordSet& set, const ExportedMetrics& metrics) {
  std::map<std::string, ResultFamily> families;
  ResultFamily usable{"1 if the figures of the record are valid, 0 if not", {}};
  for (const StoredRecord& stored : set.records) {
    const Record& record = stored.record;
    const std::optional<std::time_t> time = parse_utc(record.started);
    const OpenMetricsLabels labels = labels_of(record, time.has_value());
    usable.series[labels][time].samples = {is_usable(record) ? 1.0 : 0.0};
    for (const auto& [name, metric] : record.metrics) {
      if (!is_usable(record) || find_metric(record, name) == nullptr || !metrics.is_listed(record, name))
        continue;
      ResultFamily& family = families[open_metrics_name("penstock_result_" + name)];
      if (family.help.empty()) family.help = fmt::format("{} ({})", name, metric.unit);
      std::vector<double>& samples = family.series[labels][time].samples;
      samples.insert(samples.end(), metric.samples.begin(), metric.samples.end());
    }
  }
  std::string out;
  add_result_family(out, "penstock_result_usable", usable,
                    [](const Metric& metric) { return metric.value(); });
  for (auto& [name, family] : families) {
    const std::string metric = family.help;
    family.help = "median of " + metric;
    add_result_family(out, name, family, [](const Metric& one) { return one.value(); });
    family.help = "low end of the 95% interval of the median, or the lowest of few samples, of " + metric;
    add_result_family(out, name + "_low", family,
                      [](const Metric& one) { return repeat_range(one).range.low; });
    family.help = "high end of the 95% interval of the median, or the highest of few samples, of " + metric;
    add_result_family(out, name + "_high", family,
                      [](const Metric& one) { return repeat_range(one).range.high; });
  }
  return out.append(kOpenMetricsEnd);
}

}  // namespace penstock
