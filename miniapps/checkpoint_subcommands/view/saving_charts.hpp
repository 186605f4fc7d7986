// Checkpoints over time, as data for the page's script.
#pragma once

#include <string>
#include <vector>

#include "miniapps/checkpoint_subcommands/view/saving_cells.hpp"
#include "results/report/charts.hpp"

namespace penstock::report {

// What one run of `arm` wrote to either tier over time, and the steps of its training above: of the first
// pair, out of `pairs`. `until_s`: where x ends, so that arms can be held against each other. Empty x: no
// series.
struct SavingCharts {
  Chart steps;
  Chart rates;
};
SavingCharts saving_charts(const SavingRuns& arm, double until_s, std::vector<std::string>& tiers,
                           const Output& output);
// The length of what saving_charts() would draw, in seconds.
double saving_length_s(const SavingRuns& arm);

}  // namespace penstock::report
