#include "results/cells/rank_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/record/statistics.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

// A difference between ranks is reported if it is more than this fraction of the median rate.
constexpr double kLeastRankDifference = 0.1;

}  // namespace

ValueRange rank_rates(std::span<const RankFigures> ranks) {
  std::vector<double> rates;
  for (const RankFigures& rank : ranks) rates.push_back(rank.bytes_per_s());
  if (rates.empty()) return {};
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  return {.least = *least, .middle = median(rates), .most = *most};
}

void record_ranks(std::span<const RankFigures> ranks, const RankMetrics& metrics, Trial& trial,
                  std::string_view part) {
  if (ranks.empty()) return;
  const ValueRange rates = rank_rates(ranks);
  trial.sample(metrics.least, part, rates.least);
  trial.sample(metrics.median, part, rates.middle);
  trial.sample(metrics.most, part, rates.most);
}

ValueRange rank_rates(const Record& record, std::string_view prefix) {
  const auto rate = [&](const char* statistic) {
    return metric_value(record, fmt::format("{}rank_{}_bytes_per_s", prefix, statistic));
  };
  const auto least = rate("min");
  const auto middle = rate("median");
  const auto most = rate("max");
  if (!least || !middle || !most) return {};
  return {.least = *least, .middle = *middle, .most = *most};
}

std::string rank_difference_text(std::string_view whose, const ValueRange& rates, const Output& output) {
  const double difference = rates.most - rates.least;
  if (rates.middle > 0 && difference > kLeastRankDifference * rates.middle)
    return fmt::format("{} differ by {}: the slowest at {} {}, the fastest at {}", whose,
                       format_percent(difference / rates.middle), format_rate(rates.least, output),
                       rate_unit(output), format_rate(rates.most, output));
  return "";
}

}  // namespace penstock
