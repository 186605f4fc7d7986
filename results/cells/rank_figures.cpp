#include "results/cells/rank_figures.hpp"

#include <algorithm>
#include <vector>

#include "results/record/statistics.hpp"
#include "results/record/trial.hpp"

namespace penstock {

RankRates rank_rates(std::span<const RankFigures> ranks) {
  std::vector<double> rates;
  for (const RankFigures& rank : ranks) rates.push_back(rank.bytes_per_s());
  if (rates.empty()) return {};
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  return {.least = *least, .median = median(rates), .most = *most};
}

void record_ranks(std::span<const RankFigures> ranks, const RankMetrics& metrics, Trial& trial,
                  std::string_view part) {
  if (ranks.empty()) return;
  const RankRates rates = rank_rates(ranks);
  trial.sample(metrics.least, part, rates.least);
  trial.sample(metrics.median, part, rates.median);
  trial.sample(metrics.most, part, rates.most);
}

}  // namespace penstock
