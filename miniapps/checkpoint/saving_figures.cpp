#include "miniapps/checkpoint/saving_figures.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "results/record/statistics.hpp"

namespace penstock {
namespace {

// The time from which a checkpoint survives the failure; nothing if it never does.
std::optional<double> safe_since(const CheckpointTimes& times, Failure failure, bool fast_is_volatile) {
  const bool fast_counts = failure == Failure::process || (failure == Failure::power && !fast_is_volatile);
  std::optional<double> delay_s = times.durable_s;
  if (fast_counts && times.fast_s && (!delay_s || *times.fast_s < *delay_s)) delay_s = times.fast_s;
  if (!delay_s) return std::nullopt;
  return times.save_begin_s + *delay_s;
}

std::vector<Period> drains(std::span<const CheckpointTimes> times) {
  std::vector<Period> all;
  for (const CheckpointTimes& one : times)
    if (one.drain_begin_s && one.drain_s)
      all.push_back({*one.drain_begin_s, *one.drain_begin_s + *one.drain_s});
  return all;
}

// Joins periods that overlap or touch.
std::vector<Period> merged(std::vector<Period> all) {
  std::sort(all.begin(), all.end(), [](const Period& a, const Period& b) { return a.begin_s < b.begin_s; });
  std::vector<Period> joined;
  for (const Period& one : all) {
    if (!joined.empty() && one.begin_s <= joined.back().end_s)
      joined.back().end_s = std::max(joined.back().end_s, one.end_s);
    else
      joined.push_back(one);
  }
  return joined;
}

double overlap_s(const Period& a, const Period& b) {
  return std::max(0.0, std::min(a.end_s, b.end_s) - std::max(a.begin_s, b.begin_s));
}

}  // namespace

LostWork lost_work(std::span<const CheckpointTimes> times, double wall_s, Failure failure,
                   bool fast_is_volatile, double unsaved_before_s) {
  // For each checkpoint: the time from which it is safe, and the time when save() was called. The checkpoint
  // keeps the work that was done before that call.
  std::vector<std::pair<double, double>> safe_times;
  for (const CheckpointTimes& one : times)
    if (const auto since = safe_since(one, failure, fast_is_volatile); since && *since < wall_s)
      safe_times.emplace_back(*since, one.save_begin_s);
  std::sort(safe_times.begin(), safe_times.end());
  safe_times.emplace_back(wall_s, -unsaved_before_s);
  double area = 0;
  double most_s = 0;
  double safe_until = -unsaved_before_s;  // the work done before this time is safe
  double previous = 0;
  for (const auto& [since, saved_until] : safe_times) {
    area += (since - previous) * ((since + previous) / 2 - safe_until);
    most_s = std::max(most_s, since - safe_until);
    previous = since;
    safe_until = std::max(safe_until, saved_until);
  }
  return {.mean_s = wall_s > 0 ? area / wall_s : 0.0, .most_s = most_s};
}

std::optional<double> drain_overlap(std::span<const CheckpointTimes> times) {
  double drained_s = 0;
  double blocked_s = 0;
  for (const Period& drain : drains(times)) {
    drained_s += drain.end_s - drain.begin_s;
    for (const CheckpointTimes& one : times)
      blocked_s += overlap_s(drain, {one.save_begin_s, one.save_begin_s + one.block_s});
  }
  if (drained_s <= 0) return std::nullopt;
  return 1.0 - blocked_s / drained_s;
}

std::optional<double> step_inflation(std::span<const Period> steps, std::span<const CheckpointTimes> times) {
  constexpr size_t kFewestSteps = 3;
  const std::vector<Period> drain_periods = merged(drains(times));
  std::vector<double> ratios;
  // Step times, grouped by drain.
  // between[i]: the steps in the gap before drain i, which overlap no drain. Its last element: those after
  // all drains.
  // during[i]: the steps of which at least half overlaps drain i.
  // All other steps are left out.
  std::vector<std::vector<double>> between(drain_periods.size() + 1);
  std::vector<std::vector<double>> during(drain_periods.size());
  for (const Period& step : steps) {
    const double length = step.end_s - step.begin_s;
    const auto drain = std::find_if(drain_periods.begin(), drain_periods.end(),
                                    [&](const Period& period) { return period.end_s > step.begin_s; });
    const auto at = size_t(drain - drain_periods.begin());
    const double overlap = drain == drain_periods.end() ? 0 : overlap_s(step, *drain);
    if (overlap <= 0)
      between[at].push_back(length);
    else if (overlap >= length / 2)
      during[at].push_back(length);
  }
  for (size_t i = 0; i < drain_periods.size(); ++i) {
    std::vector<double> around = between[i];
    around.insert(around.end(), between[i + 1].begin(), between[i + 1].end());
    if (during[i].size() < kFewestSteps || around.size() < kFewestSteps) continue;
    if (const double usual = median(around); usual > 0) ratios.push_back(median(during[i]) / usual);
  }
  if (ratios.empty()) return std::nullopt;
  return median(ratios);
}

double young_interval_s(double cost_s, double mtbf_s) {
  return std::sqrt(2 * cost_s * mtbf_s);
}

double daly_interval_s(double cost_s, double mtbf_s) {
  if (cost_s >= 2 * mtbf_s) return mtbf_s;
  const double ratio = cost_s / (2 * mtbf_s);
  return young_interval_s(cost_s, mtbf_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost_s;
}

}  // namespace penstock
