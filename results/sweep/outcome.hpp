// What came of a sweep's runs: figures, whether they suffice, and how long a run takes.
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

// One for each record of a run: its value of `metric`, or where that is "" of the first in the command's
// table (first_metric() in results/cells/headlines.hpp).
std::vector<SweepFigure> figures_of(std::span<const StoredRecord> records, std::string_view metric,
                                    std::span<const MetricInfo> table);

// The turns of one cell, by round.
std::vector<const SweepTurn*> turns_of(const SweepHistory& history, const SweepCell& cell);

// Whether the 95% interval of the median is narrower than `until` wants it, of every figure of the cell's
// runs; with arms, of every other arm's ratio to the first, turn by turn. Never before six turns.
bool is_settled(const SweepSpec& spec, std::span<const SweepTurn* const> turns);

// One line of the final table: an arm's figure over all turns of a cell.
struct SweepRow {
  const SweepCell* cell = nullptr;
  std::string arm;
  SweepFigure first;           // what, metric, unit
  std::vector<double> values;  // one a turn that had one
  std::size_t turns = 0;
  std::optional<Interval> interval;  // of the median
  Verdict verdict = Verdict::ok;     // the worst
  std::string reason;
};
std::vector<SweepRow> sweep_rows(const SweepSpec& spec, std::span<const SweepCell> cells,
                                 const SweepHistory& history);
std::string sweep_table(std::span<const SweepRow> rows, const Output& output);
std::string sweep_row_line(const SweepRow& row);  // as JSON
// 1 where a run failed, else 77 where one was skipped, else 0.
int sweep_exit_code(const SweepHistory& history);

// How long turns take: the median of the cell's own, else of all, else `guess` of the cell.
class SweepTimes {
 public:
  explicit SweepTimes(const SweepHistory& history);
  void add(const SweepTurn& turn);
  double seconds(const SweepCell& cell, double guess) const;

 private:
  void keep(const SweepTurn& turn);

  std::map<std::string, std::vector<double>, std::less<>> of_cell_;
  std::vector<double> all_;
  double median_of_all_ = 0;
};

// The least that a run of these words takes, as far as its options say: 0 where they do not.
double least_seconds(const CommandInfo& command, std::span<const std::string> words);

// "3 min", "45 s", "1 h 20 min".
std::string about_so_long(double seconds);

}  // namespace penstock
