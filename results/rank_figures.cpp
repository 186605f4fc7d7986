#include "results/rank_figures.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "results/statistics.hpp"
#include "results/trial.hpp"

namespace penstock {
namespace {

std::vector<double> rates_of(std::span<const RankFigures> ranks) {
  std::vector<double> rates;
  for (const RankFigures& rank : ranks) rates.push_back(rank.bytes_per_s());
  return rates;
}

}  // namespace

void record_ranks(std::span<const RankFigures> ranks, std::string_view prefix, std::string_view per,
                  Trial& trial) {
  const std::vector<double> rates = rates_of(ranks);
  if (rates.empty()) return;
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  for (const auto& [name, rate] :
       {std::pair{"rank_min_bytes_per_s", *least}, std::pair{"rank_median_bytes_per_s", median(rates)},
        std::pair{"rank_max_bytes_per_s", *most}})
    trial.sample(std::string(prefix) + name, "B/s", Better::higher, per, rate);
}

double ranks_apart(std::span<const RankFigures> ranks) {
  const std::vector<double> rates = rates_of(ranks);
  if (rates.empty()) return 0;
  const double middle = median(rates);
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  return middle > 0 ? (*most - *least) / middle : 0.0;
}

}  // namespace penstock
