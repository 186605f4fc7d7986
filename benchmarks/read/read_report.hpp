// The records of `read` as a table.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "benchmarks/read/read_metrics.hpp"
#include "datagen/corpus/corpus.hpp"
#include "results/cells/cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Two or more lines: what was read, and for each tier what its caches were.
std::string read_heading(const Corpus& corpus, std::span<const Record> records, const Output& output);

// One row a record, in their order, with its verdict after it where that is not ok; dashes where the verdict
// leaves no number (what an interrupted run measured is shown).
std::string read_table(const Corpus& corpus, std::span<const Record> records, const Output& output);

// A line about how the table's ratios were made; nothing where no ratio could be worked out from its other
// columns: no row of other threads than its tier's first, or not more than one repeat.
std::string scaling_note(std::span<const Record> records);

// All of these.
std::string read_report(const Corpus& corpus, std::span<const Record> records, const Output& output);

// What the client reached of the plainest loop's rate, the median of the repeats' ratios.
inline std::optional<double> baseline_ratio(const Record& record) {
  return ratio_of(find_metric(record, read_metrics::kSampleRate),
                  find_metric(record, read_metrics::kBaselineRate));
}

}  // namespace penstock
