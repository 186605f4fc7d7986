// Reading against threads and ranks, as data for the page's script.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/read/view/peer_cells.hpp"
#include "benchmarks/read/view/rank_cells.hpp"
#include "benchmarks/read/view/read_cells.hpp"
#include "results/report/charts.hpp"

namespace penstock::report {

// Bandwidth against threads for one group: a line a tier, with its baseline (dashed) and ceiling (dotted)
// where measured, and what peers read of the same tier (dash-dotted). Empty series: nothing to draw.
Chart bandwidth_chart(const ReadGroup& group, const std::vector<PeerCurve>& peers,
                      std::vector<std::string>& tiers, const Output& output);

// The same against ranks, a line for each tier and number of threads.
Chart ranks_chart(const ReadGroup& group, const Output& output);

// The median and the 99th percentile of the time for one sample, by threads.
Chart latency_chart(const ReadGroup& group, std::vector<std::string>& tiers);

}  // namespace penstock::report
