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
  std::optional<double> after = times.durable_s;
  if (fast_counts && times.fast_s && (!after || *times.fast_s < *after)) after = times.fast_s;
  if (!after) return std::nullopt;
  return times.asked_s + *after;
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
  std::vector<Period> apart;
  for (const Period& one : all) {
    if (!apart.empty() && one.begin_s <= apart.back().end_s)
      apart.back().end_s = std::max(apart.back().end_s, one.end_s);
    else
      apart.push_back(one);
  }
  return apart;
}

double shared(const Period& a, const Period& b) {
  return std::max(0.0, std::min(a.end_s, b.end_s) - std::max(a.begin_s, b.begin_s));
}

}  // namespace

LostWork lost_work(std::span<const CheckpointTimes> times, double wall_s, Failure failure,
                   bool fast_is_volatile) {
  // For each checkpoint: the time from which it is safe, and the time of its save, up to which it keeps the
  // work.
  std::vector<std::pair<double, double>> safe;
  for (const CheckpointTimes& one : times)
    if (const auto since = safe_since(one, failure, fast_is_volatile); since && *since < wall_s)
      safe.emplace_back(*since, one.asked_s);
  std::sort(safe.begin(), safe.end());
  safe.emplace_back(wall_s, 0.0);
  double area = 0;
  double most = 0;
  double kept = 0;  // work up to this time is safe
  double at = 0;
  for (const auto& [since, work] : safe) {
    area += (since - at) * ((since + at) / 2 - kept);
    most = std::max(most, since - kept);
    at = since;
    kept = std::max(kept, work);
  }
  return {.mean_s = wall_s > 0 ? area / wall_s : 0.0, .most_s = most};
}

std::optional<double> drain_overlap(std::span<const CheckpointTimes> times) {
  double drained = 0;
  double stalled = 0;
  for (const Period& drain : drains(times)) {
    drained += drain.end_s - drain.begin_s;
    for (const CheckpointTimes& one : times)
      stalled += shared(drain, {one.asked_s, one.asked_s + one.block_s});
  }
  if (drained <= 0) return std::nullopt;
  return 1.0 - stalled / drained;
}

std::optional<double> step_inflation(std::span<const Period> steps, std::span<const CheckpointTimes> times) {
  constexpr std::size_t kFewest = 3;
  const std::vector<Period> busy = merged(drains(times));
  std::vector<double> ratios;
  // Step times by position. alone: steps that overlap no drain; alone[i] is the gap before drain i, the last
  // entry after all drains. near[i]: steps of which at least half overlaps drain i. All others are left out.
  std::vector<std::vector<double>> alone(busy.size() + 1);
  std::vector<std::vector<double>> near(busy.size());
  for (const Period& step : steps) {
    const double length = step.end_s - step.begin_s;
    const auto next = std::find_if(busy.begin(), busy.end(),
                                   [&](const Period& drain) { return drain.end_s > step.begin_s; });
    const auto at = static_cast<std::size_t>(next - busy.begin());
    const double together = next == busy.end() ? 0 : shared(step, *next);
    if (together <= 0)
      alone[at].push_back(length);
    else if (together >= length / 2)
      near[at].push_back(length);
  }
  for (std::size_t i = 0; i < busy.size(); ++i) {
    std::vector<double> around = alone[i];
    around.insert(around.end(), alone[i + 1].begin(), alone[i + 1].end());
    if (near[i].size() < kFewest || around.size() < kFewest) continue;
    if (const double usual = median(around); usual > 0) ratios.push_back(median(near[i]) / usual);
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
