#include "results/compare/compared_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "results/record/statistics.hpp"

namespace penstock {
namespace {

constexpr double kLogOfZero = -1e6;

// Says why the samples of two metrics cannot be compared, such as different units; "" if they can.
std::string mismatch(const Metric& one, const Metric& other) {
  if (one.unit != other.unit)
    return fmt::format("the unit is '{}' here and '{}' there", one.unit, other.unit);
  if (one.better != other.better)
    return fmt::format("better is {} here and {} there", better_name(one.better), better_name(other.better));
  if (one.per != other.per)
    return fmt::format("a sample is of one {} here and of one {} there", one.per, other.per);
  return "";
}

using PairKey = std::pair<std::string, std::string>;  // the suite and the index in a record's `pair`

}  // namespace

std::optional<ComparedSamples> gather_samples(const Cell& cell, const std::string& metric, std::string& why) {
  ComparedSamples collected;
  const Metric* first_metric = nullptr;
  const bool are_interleaved = are_arms(cell.base, cell.candidate);
  std::map<PairKey, ComparedSamples> by_pair;
  const auto add = [&](const Record& record, std::vector<double> ComparedSamples::*side,
                       std::vector<double>& runs) {
    const auto at = record.metrics.find(metric);
    if (at == record.metrics.end()) return true;
    if (first_metric == nullptr) first_metric = &at->second;
    why = mismatch(*first_metric, at->second);
    if (!why.empty()) return false;
    const std::vector<double> values = finite_samples(at->second.samples);
    if (values.empty()) return true;
    (collected.*side).insert((collected.*side).end(), values.begin(), values.end());
    runs.push_back(median(values));
    if (!are_interleaved || !record.pair.contains("index")) return true;
    std::vector<double>& pair_values = by_pair[{suite_of(record), record.pair["index"].dump()}].*side;
    pair_values.insert(pair_values.end(), values.begin(), values.end());
    return true;
  };
  for (const Record* const record : cell.base)
    if (!add(*record, &ComparedSamples::base, collected.base_runs)) return std::nullopt;
  for (const Record* const record : cell.candidate)
    if (!add(*record, &ComparedSamples::candidate, collected.candidate_runs)) return std::nullopt;
  if (first_metric != nullptr) {
    collected.unit = first_metric->unit;
    collected.better = first_metric->better;
  }
  for (const auto& [key, both] : by_pair) {
    if (both.base.empty() || both.candidate.empty()) {
      ++collected.unpaired_runs;
      continue;
    }
    collected.base_pairs.push_back(median(both.base));
    collected.candidate_pairs.push_back(median(both.candidate));
  }
  if (collected.base_pairs.empty()) collected.unpaired_runs = 0;
  return collected;
}

bool is_count(const ComparedSamples& samples) {
  if ((samples.unit != "B" && samples.unit != "1") || samples.base.empty()) return false;
  const auto is_whole = [](double value) { return value == std::floor(value); };
  return std::all_of(samples.base.begin(), samples.base.end(),
                     [&](double value) { return is_whole(value) && value == samples.base.front(); }) &&
         std::all_of(samples.candidate.begin(), samples.candidate.end(), is_whole);
}

double log_or_zero(double value) {
  return value > 0 ? std::log(value) : kLogOfZero;
}

std::optional<double> change_of(double shift) {
  // There is no ratio if a value is zero, and then `shift` contains kLogOfZero. If `shift` is the mean of two
  // differences, of which only one has a zero, it contains half of kLogOfZero. So every shift beyond a
  // quarter of kLogOfZero means that a value was zero.
  if (shift > -kLogOfZero / 4) return std::nullopt;
  return std::expm1(std::max(shift, kLogOfZero));
}

}  // namespace penstock
