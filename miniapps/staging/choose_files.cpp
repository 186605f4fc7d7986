#include "miniapps/staging/choose_files.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "io_backends/core/options.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

// The most item counts for which best_item_count() calculates an epoch.
constexpr size_t kMostCounts = 2048;
// Fewer files are preferred if they make the epoch longer by at most this factor.
constexpr double kEquallyGood = 1.001;
// best_fit() is not tried if by_density() saves this part of the maximum.
constexpr double kGoodEnough = 0.995;

// Indices of the items that save time and whose size is at most the capacity.
std::vector<size_t> candidates(const StagingProblem& problem) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < problem.items.size(); ++i)
    if (problem.items[i].saved_s > 0 && problem.items[i].bytes <= problem.capacity) indices.push_back(i);
  return indices;
}

// Takes items in the given order, and skips each that does not fit.
Chosen fill(const StagingProblem& problem, const std::vector<size_t>& order) {
  Chosen chosen;
  uint64_t left = problem.capacity;
  for (const size_t i : order) {
    if (problem.items[i].bytes > left) continue;
    left -= problem.items[i].bytes;
    chosen.push_back(i);
  }
  return chosen;
}

Chosen sorted(Chosen chosen) {
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

double density(const StagingItem& item) {
  return item.saved_s / double(std::max<uint64_t>(item.bytes, 1));
}

std::vector<size_t> by_falling_density(const StagingProblem& problem) {
  std::vector<size_t> order = candidates(problem);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return density(problem.items[a]) > density(problem.items[b]); });
  return order;
}

// How many items of `order` to take so that the epoch is shortest.
size_t best_item_count(const StagingProblem& problem, const Chosen& order) {
  ReadDemand slow{};
  ReadDemand fast{};
  add_demands(problem.items, {}, slow, fast);
  const size_t step = std::max<size_t>(order.size() / kMostCounts, 1);
  std::vector<std::pair<size_t, double>> epochs{{0, problem.epoch(slow, fast)}};
  for (size_t n = 0; n < order.size(); ++n) {
    add(slow, problem.items[order[n]].slow, -1);
    add(fast, problem.items[order[n]].fast);
    // If all items are taken, nothing is left on the slow tier. So the demand on it is set to exactly 0: the
    // subtractions above leave rounding errors.
    if (n + 1 == problem.items.size()) slow = ReadDemand{};
    if ((n + 1) % step == 0 || n + 1 == order.size()) epochs.emplace_back(n + 1, problem.epoch(slow, fast));
  }
  const auto shortest = std::min_element(epochs.begin(), epochs.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
  if (shortest->second >= epochs.front().second) return 0;
  return std::find_if(epochs.begin(), epochs.end(),
                      [&](const auto& epoch) { return epoch.second <= shortest->second * kEquallyGood; })
      ->first;
}

double saved_seconds(const StagingProblem& problem, const Chosen& chosen) {
  return std::accumulate(chosen.begin(), chosen.end(), 0.0,
                         [&](double sum, size_t i) { return sum + problem.items[i].saved_s; });
}

// An upper limit on the seconds that any choice can save. Takes the items that save most per byte first, and
// only a part of the item that no longer fits.
double most_saved_seconds(const StagingProblem& problem) {
  double sum = 0;
  uint64_t left = problem.capacity;
  for (const size_t i : by_falling_density(problem)) {
    const StagingItem& item = problem.items[i];
    if (item.bytes > left) return sum + density(item) * double(left);
    sum += item.saved_s;
    left -= item.bytes;
  }
  return sum;
}

Chosen density_policy(const StagingProblem& problem) {
  Chosen best = by_density(problem);
  // best_fit() takes as many bytes as fit, so it is tried only if by_density() also took every item that
  // fits. If by_density() stopped earlier, more files would not shorten the epoch by more than 0.1%.
  const bool tier_full = best.size() == fill(problem, by_falling_density(problem)).size();
  const bool try_best_fit =
      tier_full && saved_seconds(problem, best) < most_saved_seconds(problem) * kGoodEnough;
  const auto consider = [&](Chosen other) {
    if (problem.epoch_with(other) * kEquallyGood < problem.epoch_with(best)) best = std::move(other);
  };
  consider(best_single(problem));
  if (try_best_fit) consider(best_fit(problem));
  return best;
}

Chosen below_threshold(const StagingProblem& problem, uint64_t threshold) {
  std::vector<size_t> order;
  for (size_t i = 0; i < problem.items.size(); ++i)
    if (problem.items[i].bytes < threshold) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return problem.items[a].bytes < problem.items[b].bytes; });
  return sorted(fill(problem, order));
}

Chosen by_first_read(const StagingProblem& problem) {
  std::vector<size_t> order(problem.items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return problem.items[a].first_ns < problem.items[b].first_ns; });
  return sorted(fill(problem, order));
}

}  // namespace

void add_demands(std::span<const StagingItem> items, const Chosen& chosen, ReadDemand& slow,
                 ReadDemand& fast) {
  size_t next = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const bool staged = next < chosen.size() && chosen[next] == i;
    if (staged) ++next;
    add(staged ? fast : slow, staged ? items[i].fast : items[i].slow);
  }
}

double StagingProblem::epoch_with(const Chosen& chosen) const {
  ReadDemand slow{};
  ReadDemand fast{};
  add_demands(items, chosen, slow, fast);
  return epoch(slow, fast);
}

Result<StagingPolicy> parse_policy(std::string_view text) {
  constexpr std::string_view kThreshold = "threshold=";
  if (text == "density") return StagingPolicy(density_policy);
  if (text == "best-single") return StagingPolicy(best_single);
  if (text == "first-come") return StagingPolicy(by_first_read);
  if (text.starts_with(kThreshold)) {
    PENSTOCK_ASSIGN(const uint64_t bytes, parse_size(text.substr(kThreshold.size())));
    return StagingPolicy([bytes](const StagingProblem& problem) { return below_threshold(problem, bytes); });
  }
  return unknown_name("policy", text, {"density", "threshold=SIZE", "best-single", "first-come"});
}

Chosen by_density(const StagingProblem& problem) {
  Chosen order = fill(problem, by_falling_density(problem));
  order.resize(best_item_count(problem, order));
  return sorted(std::move(order));
}

Chosen best_single(const StagingProblem& problem) {
  const std::vector<size_t> all = candidates(problem);
  const auto best = std::max_element(all.begin(), all.end(), [&](size_t a, size_t b) {
    return problem.items[a].saved_s < problem.items[b].saved_s;
  });
  return best == all.end() ? Chosen{} : Chosen{*best};
}

Chosen best_fit(const StagingProblem& problem) {
  const std::vector<size_t> all = candidates(problem);
  if (all.empty() || all.size() > kExactItems) return {};
  const uint64_t unit_bytes = std::max<uint64_t>((problem.capacity + kExactUnits - 1) / kExactUnits, 1);
  const size_t capacity_units = size_t(problem.capacity / unit_bytes);
  std::vector<double> best(capacity_units + 1, 0.0);  // best[n]: the most seconds that n units can save
  std::vector<std::vector<bool>> takes_item(all.size(), std::vector<bool>(capacity_units + 1));
  for (size_t n = 0; n < all.size(); ++n) {
    const StagingItem& item = problem.items[all[n]];
    const size_t units = size_t((item.bytes + unit_bytes - 1) / unit_bytes);
    for (size_t used_units = capacity_units + 1; used_units-- > units;) {
      const double with_item = best[used_units - units] + item.saved_s;
      if (with_item <= best[used_units]) continue;
      best[used_units] = with_item;
      takes_item[n][used_units] = true;
    }
  }
  Chosen chosen;
  size_t used_units = capacity_units;
  for (size_t n = all.size(); n-- > 0;) {
    if (!takes_item[n][used_units]) continue;
    chosen.push_back(all[n]);
    used_units -= size_t((problem.items[all[n]].bytes + unit_bytes - 1) / unit_bytes);
  }
  return sorted(std::move(chosen));
}

}  // namespace penstock
