// Evaluates the runs of a sweep: their figures, whether there are enough of them, and how long a run takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "results/record/statistics.hpp"
#include "results/record/store.hpp"
#include "results/sweep/plan.hpp"
#include "results/sweep/state.hpp"

namespace penstock {

// Returns the figures of each record of a run: the value of `metric`. If `metric` is "", the metrics that
// shown_metrics() chooses (results/cells/headlines.hpp).
std::vector<SweepFigure> figures_of(std::span<const StoredRecord> records, std::string_view metric,
                                    std::span<const MetricInfo> table);

// The turns of one cell that are done, sorted by round.
std::vector<const SweepTurn*> turns_of(const SweepHistory& history, const SweepCell& cell);

// Whether a cell needs no more turns, because its medians are known well enough. That is the case if the 95%
// interval of each median is at most as wide as `until` in the sweep's file says. Always false before six
// turns.
// Without arms, there is a median for the first figure of each record of the cell's runs. With arms, there is
// a median of ratios for each arm but the first: its figure divided by the first arm's figure of the same
// turn.
bool is_settled(const SweepSpec& spec, std::span<const SweepTurn* const> turns);

// One line of the final table: one figure of one arm, over all turns of a cell.
struct SweepRow {
  const SweepCell* cell = nullptr;
  std::string arm;
  SweepFigure figure;                 // the figure; only its `label`, `metric` and `unit` are used
  std::vector<double> values;         // one value for each turn that has this figure
  std::vector<double> bytes_per_s{};  // SweepFigure::bytes_per_s of these turns
  size_t turns = 0;
  std::optional<Interval> interval;  // 95% confidence interval of the median
  Verdict verdict = Verdict::ok;     // the worst verdict of all turns
  std::string reason;
};
std::vector<SweepRow> sweep_rows(const SweepSpec& spec, std::span<const SweepCell> cells,
                                 const SweepHistory& history);
std::string sweep_table(std::span<const SweepRow> rows, const Output& output);
std::string sweep_row_line(const SweepRow& row);  // one line of JSON
// The exit code of a sweep: 1 if any run failed, otherwise 77 if any was skipped, otherwise 0.
int sweep_exit_code(const SweepHistory& history);

// Estimates how long a turn of a cell takes (a turn: plan.hpp): about the median time of the cell's turns
// that are done. If none is done: SweepCell::expected, but at least about the median of all turns of the
// sweep.
class SweepTimes {
 public:
  explicit SweepTimes(const SweepHistory& history);
  void add(const SweepTurn& turn);
  TimeRange turn(const SweepCell& cell) const;

 private:
  void add_seconds(const SweepTurn& turn);

  std::map<std::string, std::vector<double>, std::less<>> cell_seconds_;
  std::vector<double> all_seconds_;
  double median_of_all_ = 0;
};

// The expected time of a run with these arguments: what the command itself expects, plus the start of a
// process. `context` has what is not in the arguments, such as the named tiers. If the command cannot tell,
// the range is wide, and begins with the time that its options ask for.
TimeRange run_time(const CommandInfo& command, std::span<const std::string> arguments,
                   const CommandContext& context);

// A time as rough text: "45 s", "3 min", "1 h 20 min".
std::string rough_duration(double seconds);

}  // namespace penstock
