// Where along many runs a result changed: one series for each cell, metric and machine, one value a run.
// Advice, not a gate: runs of many days differ in more than the program.
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
  std::string
      cell;  // with the machine after it where there are several, and the arm where runs were interleaved
  std::string metric;
  std::string unit;
  Better better = Better::neither;
  std::size_t runs = 0;               // with a usable number
  std::optional<ChangePoint> change;  // absent: too few runs for a verdict
  double p = 1;                       // of the change, Holm-adjusted over all series that are long enough
  bool changed = false;               // p <= alpha, by at least the least effect
  bool suspected = false;             // it would be changed, were it the only series
  bool worse = false;                 // of a change: for the worse
  std::string since;                  // the first run behind the change: "2026-11-20T09:30:00Z, runs/x.jsonl"
};

struct History {
  // Changes for the worse first, then other changes, suspicions likewise, then as the records come.
  std::vector<HistoryRow> rows;
  std::vector<std::string> remarks;
};

// `settings.other_machines` is not looked at: every machine has series of its own. An Error where there is no
// record or no metric that matches.
Result<History> inspect_history(const RecordSet& set, const CompareSettings& settings);

}  // namespace penstock
