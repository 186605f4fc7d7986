// Collects the samples of one metric of one cell, from base and candidate, in the form that the statistical
// tests need.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/compare/matched_cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// The samples of base and candidate, in the order of the records. Samples that are not finite are left out.
struct ComparedSamples {
  std::string unit;
  Better better = Better::neither;
  std::vector<double> base;  // every sample of the base
  std::vector<double> candidate;
  std::vector<double> base_runs;  // one median for each run of the base that has samples
  std::vector<double> candidate_runs;
  // Medians of runs that were interleaved, one for each pair: base_pairs[i] and candidate_pairs[i] are from
  // runs with the same suite and index. Empty if no runs were interleaved.
  std::vector<double> base_pairs;
  std::vector<double> candidate_pairs;
  size_t unpaired_runs = 0;  // interleaved runs whose suite and index no run of the other side has
};

// Collects the samples of `metric`. Absent if any two records differ in the unit, in which direction is
// better, or in what one sample is. Then `why` is set to the reason. Records without the metric are skipped.
std::optional<ComparedSamples> gather_samples(const Cell& cell, const std::string& metric, std::string& why);

// Whether the metric is a count that can be compared exactly. It has the unit "B" or "1", all samples are
// whole numbers, and all samples of the base are equal.
bool is_count(const ComparedSamples& samples);

// ln(value), or a very large negative number for 0. So two zeros are equal, and a change from or to zero is
// larger than any other change.
double log_or_zero(double value);
// The relative change exp(shift) - 1, where `shift` is the difference of two results of log_or_zero(). Absent
// if one of the two values was zero.
std::optional<double> change_of(double shift);

}  // namespace penstock
