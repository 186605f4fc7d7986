// Makes the charts of read rates over threads and ranks, as data for the script of the report page.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/read/view/peer_cells.hpp"
#include "benchmarks/read/view/rank_cells.hpp"
#include "benchmarks/read/view/read_cells.hpp"
#include "results/report/charts.hpp"

namespace penstock::report {

// Bandwidth over threads for one group. Each tier has a line, with its baseline (dashed) and ceiling (dotted)
// if measured, and the rates of peers on the same tier (dash-dotted). Without values it has no series.
Chart bandwidth_chart(const ReadGroup& group, const std::vector<PeerCurve>& peers,
                      std::vector<std::string>& tiers, const Output& output);

// Bandwidth over ranks for one group, with a line for each tier and number of threads.
Chart ranks_chart(const ReadGroup& group, const Output& output);

// The median and the 99th percentile of the time for one sample, by threads.
Chart latency_chart(const ReadGroup& group, std::vector<std::string>& tiers);

}  // namespace penstock::report
