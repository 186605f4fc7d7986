// Collects the samples of one metric of one cell from both sides, in the form that the tests need.
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
  std::vector<double> base_runs;  // one median for each run that has samples
  std::vector<double> candidate_runs;
  // Medians of paired runs: entry i of both vectors is from the same suite and index. Empty if no runs were
  // interleaved.
  std::vector<double> base_pairs;
  std::vector<double> candidate_pairs;
  size_t unpaired_runs = 0;  // interleaved runs without a partner
};

// Absent, with the reason in `why`, if any two records differ in unit, direction or what one sample is.
// Records without the metric are skipped.
std::optional<ComparedSamples> gather_samples(const Cell& cell, const std::string& metric, std::string& why);

// Whether the metric is a count that can be compared exactly: unit "B" or "1", whole numbers, and the same
// value in every sample of the base.
bool is_count(const ComparedSamples& samples);

// ln(value). For 0 it is a very large negative number, so that two zeros are equal and every change from or
// to zero is beyond measure.
double log_or_zero(double value);
// exp(shift) - 1 for a difference of two results of log_or_zero(); absent if one of the two values was zero.
std::optional<double> change_of(double shift);

}  // namespace penstock
