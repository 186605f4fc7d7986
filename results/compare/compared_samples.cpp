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

// Why two samples are not of the same kind, as text; "" if they are.
std::string mismatch(const Metric& one, const Metric& other) {
  if (one.unit != other.unit)
    return fmt::format("the unit is '{}' here and '{}' there", one.unit, other.unit);
  if (one.better != other.better)
    return fmt::format("better is {} here and {} there", better_name(one.better), better_name(other.better));
  if (one.per != other.per)
    return fmt::format("a sample is of one {} here and of one {} there", one.per, other.per);
  return "";
}

using PairKey = std::pair<std::string, std::string>;  // suite and index

}  // namespace

std::optional<ComparedSamples> gather_samples(const Cell& cell, const std::string& metric, std::string& why) {
  ComparedSamples found;
  const Metric* first = nullptr;
  const bool arms = are_arms(cell.base, cell.candidate);
  std::map<PairKey, ComparedSamples> partners;
  const auto add = [&](const Record& record, std::vector<double> ComparedSamples::*side,
                       std::vector<double>& runs) {
    const auto at = record.metrics.find(metric);
    if (at == record.metrics.end()) return true;
    if (first == nullptr) first = &at->second;
    why = mismatch(*first, at->second);
    if (!why.empty()) return false;
    const std::vector<double> values = finite_samples(at->second.samples);
    if (values.empty()) return true;
    (found.*side).insert((found.*side).end(), values.begin(), values.end());
    runs.push_back(median(values));
    if (!arms || !record.pair.contains("index")) return true;
    std::vector<double>& of_pair = partners[{suite_of(record), record.pair["index"].dump()}].*side;
    of_pair.insert(of_pair.end(), values.begin(), values.end());
    return true;
  };
  for (const Record* const record : cell.base)
    if (!add(*record, &ComparedSamples::base, found.base_runs)) return std::nullopt;
  for (const Record* const record : cell.candidate)
    if (!add(*record, &ComparedSamples::candidate, found.candidate_runs)) return std::nullopt;
  if (first != nullptr) {
    found.unit = first->unit;
    found.better = first->better;
  }
  for (const auto& [key, both] : partners) {
    if (both.base.empty() || both.candidate.empty()) {
      ++found.unpaired_runs;
      continue;
    }
    found.base_pairs.push_back(median(both.base));
    found.candidate_pairs.push_back(median(both.candidate));
  }
  if (found.base_pairs.empty()) found.unpaired_runs = 0;
  return found;
}

bool is_count(const ComparedSamples& samples) {
  if ((samples.unit != "B" && samples.unit != "1") || samples.base.empty()) return false;
  const auto whole = [](double value) { return value == std::floor(value); };
  return std::all_of(samples.base.begin(), samples.base.end(),
                     [&](double value) { return whole(value) && value == samples.base.front(); }) &&
         std::all_of(samples.candidate.begin(), samples.candidate.end(), whole);
}

double log_or_zero(double value) {
  return value > 0 ? std::log(value) : kLogOfZero;
}

std::optional<double> change_of(double shift) {
  // The shift may be the mean of two differences, of which only one has a zero. Then half of the logarithm of
  // zero remains, so the limit is far below that.
  if (shift > -kLogOfZero / 4) return std::nullopt;
  return std::expm1(std::max(shift, kLogOfZero));
}

}  // namespace penstock
