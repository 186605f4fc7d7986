// Charts of checkpoints over time, as data for the page's script.
#pragma once

#include <string>
#include <vector>

#include "miniapps/checkpoint_subcommands/view/saving_cells.hpp"
#include "results/report/charts.hpp"

namespace penstock::report {

// The bytes that one run of `arm` wrote to each tier over time, and the steps of its training in a chart
// above. Shows the run of the first pair. `until_s` is the end of x, so that the charts of all arms have the
// same scale. x is empty if the record has no series.
struct SavingCharts {
  Chart steps;
  Chart rates;
};
SavingCharts saving_charts(const SavingRuns& arm, double until_s, std::vector<std::string>& tiers,
                           const Output& output);
// The length in seconds of the run that saving_charts() shows.
double saving_length_s(const SavingRuns& arm);

}  // namespace penstock::report
