// Writes OpenMetrics text (version 1.0), which Prometheus and its relatives read.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/export/export_cells.hpp"
#include "results/record/store.hpp"

namespace penstock {

// Names and values of the labels of one sample. The names must be different and valid (open_metrics_name()).
using OpenMetricsLabels = std::vector<std::pair<std::string, std::string>>;

// Turns text into a valid name: letters, digits and '_'. Every other character becomes '_'.
std::string open_metrics_name(std::string_view text);

// Begins a family of samples. `type` is "gauge" or "counter". All samples of a family must follow before the
// next family begins.
void add_open_metrics_family(std::string& out, std::string_view name, std::string_view type,
                             std::string_view help);
// Adds a sample. `name` is that of the family, with "_total" for a counter. The samples of one family with
// the same labels must be in the order of time.
void add_open_metrics_sample(std::string& out, std::string_view name, const OpenMetricsLabels& labels,
                             double value, std::optional<std::time_t> time = {});
inline constexpr std::string_view kOpenMetricsEnd = "# EOF\n";
inline constexpr std::string_view kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Writes records. Each metric that is_listed() becomes the gauges penstock_result_METRIC (the median), _low
// and _high, with the labels command, tier, host, corpus, the work parameters and label_KEY. The time of a
// sample is the start of its record. penstock_result_usable is 1 for a record with valid figures and 0 for a
// failed one.
std::string open_metrics_text(const RecordSet& set, const ExportedMetrics& metrics);

}  // namespace penstock
