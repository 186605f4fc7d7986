// How far the ranks of a job lie apart, and the sentence that says so.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

struct Output;
struct Record;

// Of the slowest, the middle and the fastest rank, in bytes per second; all 0 without ranks.
struct RankRates {
  double least = 0;
  double median = 0;
  double most = 0;
};

// What record_ranks() put into the record with this prefix: medians of the repeats.
RankRates rank_rates(const Record& record, std::string_view prefix = "");

// "<whose> lie 30% apart: the slowest at 80.0 MiB/s, the fastest at 110.0"; "" where they end together, as
// ranks with equal work should, or nothing is known.
std::string ranks_apart(std::string_view whose, const RankRates& rates, const Output& output);

}  // namespace penstock
