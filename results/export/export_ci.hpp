// Writes records in the formats of two services that draw the history of benchmarks and warn of regressions.
// Both get the headlines of each cell: the median of all samples, and its range.
#pragma once

#include <string>

#include "results/export/export_cells.hpp"
#include "results/record/store.hpp"

namespace penstock {

// Bencher Metric Format: {cell: {metric: {value, lower_value, upper_value}}}. The two bounds are absent if
// there is only one sample. The format has no place for units: rates are in B/s and 1/s, times in s or ns. ""
// if no cell has a headline.
std::string bencher_json(const RecordSet& set, const ExportedMetrics& metrics);

// The input of github-action-benchmark: an array of {name, unit, value, range, extra}. That action has one
// tool for values of which more is better (customBiggerIsBetter) and another for those of which less is
// better (customSmallerIsBetter). So this function returns only the metrics of one direction. "" if there are
// none, because the action fails on an empty array. A metric without a direction is in neither.
std::string github_json(const RecordSet& set, const ExportedMetrics& metrics, Better better);

}  // namespace penstock
