// What a grid of threads and prefetch depths says: the fewest threads that do.
#include <fmt/format.h>

#include <algorithm>

#include "io_backends/core/cli/table.hpp"
#include "results/cells/verdicts_parts.hpp"

namespace penstock::verdicts {
namespace {

struct Cell {
  std::uint64_t threads = 0;
  std::uint64_t prefetch = 0;
  double value = 0;
};

// By rising threads, then by rising prefetch.
std::vector<Cell> cells_of(const TrainGrid& grid, const char* metric) {
  std::vector<Cell> cells;
  for (const auto& [threads, row] : grid.at)
    for (const auto& [prefetch, record] : row)
      if (const auto value = metric_value(*record, metric)) cells.push_back({threads, prefetch, *value});
  return cells;
}

std::string value_text(double value, bool busy) {
  return busy ? format_percent(value) : format_number(value) + " samples/s";
}

}  // namespace

void describe_grids(const std::vector<TrainGrid>& grids, std::vector<Sentence>& out) {
  describe_each("training-grid", grids, out, [&](const TrainGrid& grid) {
    const bool busy = grid_shows_utilization(grid);
    const std::vector<Cell> cells = cells_of(grid, busy ? "accelerator_utilization" : "samples_per_s");
    if (cells.size() < 2) return;
    const auto best = std::max_element(cells.begin(), cells.end(),
                                       [](const Cell& a, const Cell& b) { return a.value < b.value; });
    if (best->value <= 0) return;
    const auto enough = std::find_if(cells.begin(), cells.end(), [&](const Cell& cell) {
      return cell.value >= (1 - kSameRate) * best->value;
    });
    const std::string what = busy ? "keep the accelerator busy" : "deliver";
    std::string text = fmt::format("{} with prefetch {} {} {}{}, the most that was measured for {}",
                                   threads_text(best->threads), best->prefetch,
                                   best->threads == 1 && busy ? "keeps the accelerator busy"
                                   : best->threads == 1       ? "delivers"
                                                              : what,
                                   value_text(best->value, busy), busy ? " of the time" : "", grid.title);
    if (enough != best)
      text += fmt::format("; {} with prefetch {} come{} within {} of that ({})",
                          threads_text(enough->threads), enough->prefetch, enough->threads == 1 ? "s" : "",
                          format_percent(kSameRate), value_text(enough->value, busy));
    out.push_back({Tone::finding, "grid", text + "."});
  });
}

}  // namespace penstock::verdicts
