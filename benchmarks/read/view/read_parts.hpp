// Writes the sentences and the parts of the report page about records of `read`.
//
// The rules for the sentences (a row is one tier with one thread count):
// - Scaling: rates are compared with the rate at the fewest threads, repeat by repeat if both rows have
//   equally many repeats. A tier stops scaling at the first thread count after which no measured count is 10%
//   faster. If the rate falls by 10% or more from its peak to the last count, the sentence reports that loss
//   instead. Ranks are judged as threads are.
// - "A tier delivers X times the bandwidth of another" compares the fastest row of each, whatever its
//   thread count. The ratios at equal thread counts follow. Tiers within 5% of each other count as equal.
// - Baseline: the sentence reports samples_per_s / baseline_samples_per_s, repeat by repeat if both have
//   equally many repeats.
// - Noise: a difference is not reported if it is not larger than the spread, (max - min) / median, of the
//   repeats of the compared rows, or if a pair of repeats contradicts it. If the ratios of the repeats differ
//   by 10% or more, the sentence has their range. If a row has only one repeat, the sentence says so and is a
//   caution.
// - Ceiling: a tier's fastest row is compared with the highest ceiling of all rows of the tier. If the rows
//   decode, the sentence reports how far decoding stays below the ceiling.
// - "N accelerators" is a read rate divided by the rate of one accelerator, and the sentence says so. It is
//   for samples that are pictures and were not decoded: else the rate is not that of the tier in pictures.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/read/view/peer_cells.hpp"
#include "benchmarks/read/view/rank_cells.hpp"
#include "benchmarks/read/view/read_cells.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/report/page_state.hpp"

namespace penstock::verdicts {

// Texts that the sentences have in common.
bool any_has_single_repeat(const std::vector<const ReadCurve*>& curves);
// False if the record says that the requested cache state could not be verified, or that it does not apply:
// the data are in memory, or their reads bypass the page cache, or this machine does not cache them.
bool is_as_requested(const Record& record);
bool decodes(const ReadGroup& group);
// The text in brackets after a sentence. It has the cache state of the tiers, how this group differs from
// other groups, and what makes the result less certain.
std::string group_note(const ReadGroup& group, const std::vector<const ReadCurve*>& curves,
                       const std::string& more = "");
// A ratio as text, with one decimal below 9.95 ("3.1x") and none above ("12x"). Below 1 and just above it has
// two ("0.45x", "1.02x").
std::string ratio_text(double ratio);
// The ratio of rates whose repeats differ: "2.1x to 6.0x" if they differ by 10% or more, else "3.1x".
std::string range_text(const ValueRange& ratio, std::string (*format)(double));
ValueRange inverse(const ValueRange& ratio);
// Whether the ratio proves that one rate is higher than the other: by more than the spread of either's
// repeats, and in each pair of repeats.
bool is_faster(const ValueRange& ratio, double largest_spread);

// How the rate of the curve changes with the number of threads or ranks, without the brackets and the full
// stop. `count_text` writes the number: "4 threads". `ratio` divides the rates of two records. "" if the
// curve has fewer than two rates.
std::string scaling_text(const ReadCurve& curve, const std::string& subject,
                         std::string (*count_text)(uint64_t),
                         std::optional<ValueRange> (*ratio)(const Record& record, const Record& base));

// How many accelerators the rate of the record could feed, at the rate of one that the user gave or else at
// an assumed one: "enough for 44 accelerators of an assumed 200 images/s each". "" if the samples are no
// pictures, were decoded or could not all be read.
std::string accelerators_clause(const Record& record, const ReadGroup& group);

// The record with the highest rate of each tier, over all groups of a closed loop. Only cold records count
// for a tier that has some.
std::vector<const Record*> best_records(const std::vector<ReadGroup>& groups);
// See RecordView::bottom_line.
std::vector<std::string> read_bottom_line(std::span<const Record> records, const Output& output);

void describe_baseline(const ReadGroup& group, std::vector<Sentence>& out);
// Compares the tier's fastest row with its ceiling: the highest rate that any probe reached with any number
// of clients.
void describe_ceiling(const ReadGroup& group, const ReadCurve& curve, const Output& output,
                      std::vector<Sentence>& out);
void describe_read(const std::vector<ReadGroup>& groups, const Output& output, std::vector<Sentence>& out);
// `groups` are those of rank_groups(), or of depth_groups() with the section "depth".
void describe_rank_scaling(const std::vector<ReadGroup>& groups, std::string_view section,
                           std::vector<Sentence>& out);
// Compares the rates of other programs with those of `read`. The other programs did different work, so the
// sentences are cautions and not findings.
void describe_peers(const std::vector<PeerCurve>& peers, const std::vector<ReadGroup>& groups,
                    std::vector<Sentence>& out);

}  // namespace penstock::verdicts

namespace penstock::report {

std::string read_section(std::span<const Record> records, PageState& state);
std::string ranks_section(std::span<const Record> records, PageState& state);
std::string depth_section(std::span<const Record> records, PageState& state);
std::string peers_section(std::span<const Record> records, PageState& state);

}  // namespace penstock::report
