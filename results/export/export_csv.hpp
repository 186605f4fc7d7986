// Writes records as tidy tables for pandas, R or a spreadsheet, as CSV (RFC 4180, lines end in CR LF). A
// column has the same name and meaning whatever else is in the table. In particular, no name of a tier is in
// a heading.
//
// Both tables have a column for each work parameter (what was measured, such as `threads`) and for each label
// (`label_KEY`). A field is empty if the record does not have the value.
#pragma once

#include <string>

#include "results/export/export_cells.hpp"
#include "results/record/store.hpp"

namespace penstock {

// One row for each record. Each metric that is_listed() has the columns METRIC_median, _low, _high, _range
// (what low and high are), _n (the number of samples) and _unit.
std::string records_csv(const RecordSet& set, const ExportedMetrics& metrics);

// One row for each sample of these metrics. `record` is the same as in records_csv().
std::string repeats_csv(const RecordSet& set, const ExportedMetrics& metrics);

}  // namespace penstock
