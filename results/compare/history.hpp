// Finds where a result changed over many runs. There is one series for each cell, metric, machine and arm,
// with one value per run. The result is only advice, because over many days other things than the program
// also change.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"
#include "results/compare/change_point.hpp"
#include "results/compare/comparison.hpp"
#include "results/record/record.hpp"
#include "results/record/store.hpp"

namespace penstock {

struct HistoryRow {
  // Name of the cell, then the machine if there are several, then the arm if runs were interleaved.
  std::string cell;
  std::string metric;
  std::string unit;
  Better better = Better::neither;
  size_t runs = 0;                    // runs with a usable number
  std::optional<ChangePoint> change;  // absent: too few runs for a verdict
  double p = 1;                       // p of the change, Holm-adjusted over all series that are long enough
  bool changed = false;               // p <= alpha, and the change is at least the least effect
  bool suspected = false;             // `changed` would be true if this were the only series
  bool is_worse = false;              // the change is for the worse
  std::string first_changed_run;      // the first run after the change: "2026-11-20T09:30:00Z, runs/x.jsonl"
};

struct History {
  // The rows of all series, sorted: changes for the worse, other changes, suspected changes for the worse,
  // other suspected changes, and then the rest in the order of the records.
  std::vector<HistoryRow> rows;
  std::vector<std::string> remarks;
};

// Looks for a change in each series. `settings.allow_other_machines` is ignored, because every machine has a
// series of its own. Fails if there is no record or no metric matches.
Result<History> inspect_history(const RecordSet& set, const CompareSettings& settings);

}  // namespace penstock
