// Makes the charts of read rates over threads and ranks, as data for the script of the report page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/read/view/peer_cells.hpp"
#include "benchmarks/read/view/rank_cells.hpp"
#include "benchmarks/read/view/read_cells.hpp"
#include "results/report/charts.hpp"

namespace penstock::report {

// The chart of bandwidth over threads for one group. Each tier has a line. If they were measured, its
// baseline (dashed), its ceiling (dotted) and the rates of other programs on this tier (dash-dotted) have
// lines too. A chart without values has no series.
Chart bandwidth_chart(const ReadGroup& group, const std::vector<PeerCurve>& peers,
                      std::vector<std::string>& tiers, const Output& output);

// Bandwidth over ranks, or over depths (`count` is "ranks" or "depth"), for one group, with a line for each
// tier and number of threads.
Chart ranks_chart(const ReadGroup& group, std::string_view count, const Output& output);

// The chart of latency over threads: the median and the 99th percentile of the time for one sample.
Chart latency_chart(const ReadGroup& group, std::vector<std::string>& tiers);

// The chart of the distribution of latencies: of each tier at its fastest thread count, the time within which
// each share of the samples was read.
Chart distribution_chart(const ReadGroup& group, std::vector<std::string>& tiers);

// What one sample of the record is, in the unit of a rate: "files/s", "IOPS" (blocks) or "samples/s".
std::string sample_rate_unit(const Record& record);

}  // namespace penstock::report
