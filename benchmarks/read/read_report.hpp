// Prints the records of `penstock read` as a table.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "benchmarks/read/read_metrics.hpp"
#include "datagen/corpus/corpus.hpp"
#include "results/cells/cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Two or more lines: the corpus that was read, and the cache state of each tier.
std::string read_heading(const Corpus& corpus, std::span<const Record> records, const Output& output);

// The table of records, with one row for each, in their order. The last column has the verdict if it is not
// ok. If the verdict makes a number invalid, the row has a dash instead. The numbers of an interrupted run
// are shown.
std::string read_table(const Corpus& corpus, std::span<const Record> records, const Output& output);

// A line that explains that the table's ratios are medians of the ratios of single repeats. Empty if no ratio
// needs this: there is only one repeat, or each tier has only its first thread count.
std::string scaling_note(std::span<const Record> records);

// The whole report: heading, table, scaling note, and sentences about the figures.
std::string read_report(const Corpus& corpus, std::span<const Record> records, const Output& output);

// The baseline's sample rate. nullptr if the record has none, or if its baseline did other work than the
// reader: in earlier versions it had one read in flight, whatever the depth of the reader.
inline const Metric* baseline_rate(const Record& record) {
  const bool other_depth =
      parameter_number(record, "depth").value_or(1) > 1 && parameter_text(record, "baseline_loop").empty();
  return other_depth ? nullptr : find_metric(record, read_metrics::kBaselineRate);
}
// The reader's sample rate divided by the baseline's sample rate: the median of this ratio over all repeats.
inline std::optional<double> baseline_ratio(const Record& record) {
  const auto ratio = ratio_of_pairs(find_metric(record, read_metrics::kSampleRate), baseline_rate(record));
  return ratio ? std::optional(ratio->middle) : std::nullopt;
}
// A reader cannot be this many times as fast as the simplest loop on the same work, nor faster than its
// ceiling by more than kCeilingTolerance. Such a ratio says that something else differed.
inline constexpr double kImpossibleBaselineRatio = 5;
// Texts of the two ratios for a table: "impossible" if they are.
std::string baseline_text(std::optional<double> ratio, std::string (*format)(double));
std::string ceiling_text(std::optional<double> fraction);

}  // namespace penstock
