// Writes the sentences and the parts of the report page about records of `read`.
//
// The rules:
//  - A tier stops scaling at the first thread count after which no measured count brings 10% more. A curve
//    that falls by 10% and more from its peak to its last count loses: that is said instead. Rates are
//    against the fewest threads, repeat by repeat where both have as many.
//  - A tier feeds X times another at the highest thread count that both were measured at; within 5% they feed
//    the same.
//  - Baseline: samples_per_s over baseline_samples_per_s, repeat by repeat where both have as many repeats.
//  - No comparison is said of a difference within the spread of the repeats ((max - min) / median of the rows
//    compared): such rows cannot be told apart. What rests on rows of one repeat says so and is a caution.
//  - Ceiling: a tier's fastest row against the highest ceiling that any of its rows has. Rows that decode say
//    how far decoding stays below that.
//  - "At most N accelerators" is a division of a read rate and says so.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "benchmarks/read/view/peer_cells.hpp"
#include "benchmarks/read/view/rank_cells.hpp"
#include "benchmarks/read/view/read_cells.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/report/page_state.hpp"

namespace penstock::verdicts {

void describe_read(const std::vector<ReadGroup>& groups, const Output& output, std::vector<Sentence>& out);
void describe_rank_scaling(const std::vector<ReadGroup>& groups, std::vector<Sentence>& out);
// A program that worked otherwise is no finding, but what it moved next to ours is worth a word.
void describe_peers(const std::vector<PeerCurve>& peers, const std::vector<ReadGroup>& groups,
                    std::vector<Sentence>& out);

}  // namespace penstock::verdicts

namespace penstock::report {

std::string read_section(std::span<const Record> records, PageState& state);
std::string ranks_section(std::span<const Record> records, PageState& state);
std::string peers_section(std::span<const Record> records, PageState& state);

}  // namespace penstock::report
