// The numbers of one metric of one cell on both sides, as the tests want them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/compare/matched_cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Finite samples only, in the order of the records.
struct ComparedSamples {
  std::string unit;
  Better better = Better::neither;
  std::vector<double> base;  // every sample
  std::vector<double> candidate;
  std::vector<double> base_runs;  // the median of each run that has one
  std::vector<double> candidate_runs;
  // Medians of runs of one suite and index, the i-th of one side with that of the other; empty where nothing
  // was interleaved.
  std::vector<double> base_pairs;
  std::vector<double> candidate_pairs;
  std::size_t alone = 0;  // interleaved runs without a partner
};

// Absent, with the reason in `why`, where unit, direction or what a sample is differ between any two records.
// Records without the metric are skipped.
std::optional<ComparedSamples> gather_samples(const Cell& cell, const std::string& metric, std::string& why);

// A number of things that were counted, and the same each time in the base: unit "B" or "1", whole numbers.
bool is_count(const ComparedSamples& samples);

// ln(value), and for 0 a number below all others, so that against it every change is beyond measure and two
// zeros are equal.
double log_or_zero(double value);
// exp(shift) - 1 for a shift of such logarithms; absent where a zero was at one end.
std::optional<double> change_of(double shift);

}  // namespace penstock
