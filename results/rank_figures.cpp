#include "results/rank_figures.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "results/statistics.hpp"
#include "results/trial.hpp"

namespace penstock {

RankRates rank_rates(std::span<const RankFigures> ranks) {
  std::vector<double> rates;
  for (const RankFigures& rank : ranks) rates.push_back(rank.bytes_per_s());
  if (rates.empty()) return {};
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  return {.least = *least, .median = median(rates), .most = *most};
}

void record_ranks(std::span<const RankFigures> ranks, std::string_view prefix, std::string_view per,
                  Trial& trial) {
  if (ranks.empty()) return;
  const RankRates rates = rank_rates(ranks);
  for (const auto& [name, rate] :
       {std::pair{"rank_min_bytes_per_s", rates.least}, std::pair{"rank_median_bytes_per_s", rates.median},
        std::pair{"rank_max_bytes_per_s", rates.most}})
    trial.sample(std::string(prefix) + name, "B/s", Better::higher, per, rate);
}

}  // namespace penstock
