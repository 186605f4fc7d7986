// Writes the sentence about a grid of runs with different threads and prefetch depths: the fewest threads
// that are enough.
#include <fmt/format.h>

#include <algorithm>

#include "io_backends/core/cli/table.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/view/train_parts.hpp"
#include "results/cells/cells.hpp"

namespace penstock::verdicts {
namespace {

std::string value_text(double value, bool is_utilization) {
  return is_utilization ? "AU " + format_percent(value) : format_number(value) + " samples/s";
}

}  // namespace

void describe_grids(const std::vector<TrainGrid>& grids, std::vector<Sentence>& out) {
  describe_each("training-grid", grids, out, [&](const TrainGrid& grid) {
    const bool shows_utilization = grid_shows_utilization(grid);
    const MetricInfo metric = shows_utilization ? train_metrics::kUtilization : train_metrics::kSampleRate;
    const auto value = [&](const Record* record) { return *metric_value(*record, metric); };
    RecordList cells;  // sorted by threads, then by prefetch depth
    for (const auto& [threads, row] : grid.at)
      for (const auto& [prefetch, record] : row)
        if (metric_value(*record, metric)) cells.push_back(record);
    if (cells.size() < 2) return;
    const Record* const best = *std::max_element(
        cells.begin(), cells.end(), [&](const Record* a, const Record* b) { return value(a) < value(b); });
    if (value(best) <= 0) return;
    const Record* const fewest_enough = *std::find_if(cells.begin(), cells.end(), [&](const Record* cell) {
      return value(cell) >= (1 - kSameRateTolerance) * value(best);
    });
    const uint64_t threads = *whole_number(*best, "threads", 1);
    const uint64_t fewest_threads = *whole_number(*fewest_enough, "threads", 1);
    const std::string what = shows_utilization ? "reach" : "deliver";
    std::string text = fmt::format("{} with prefetch {} {}{} {}, the most that was measured for {}",
                                   threads_text(threads), *train_prefetch(*best), what,
                                   threads != 1        ? ""
                                   : shows_utilization ? "es"
                                                       : "s",
                                   value_text(value(best), shows_utilization), grid.title);
    if (fewest_enough != best)
      text += fmt::format("; {} with prefetch {} come{} within {} of that ({})", threads_text(fewest_threads),
                          *train_prefetch(*fewest_enough), fewest_threads == 1 ? "s" : "",
                          format_percent(kSameRateTolerance),
                          value_text(value(fewest_enough), shows_utilization));
    out.push_back({Tone::finding, "grid", text + "."});
  });
}

}  // namespace penstock::verdicts
