// Charts of checkpoints over time, as data for the page's script.
#pragma once

#include <string>
#include <vector>

#include "miniapps/checkpoint_subcommands/view/saving_cells.hpp"
#include "results/report/charts.hpp"

namespace penstock::report {

// Two charts of the first run of `arm`, which is the run of its first pair. `rates`: the bytes that the run
// wrote to each tier over time. `steps`: the steps of its training, shown above `rates`. The x axis ends at
// `until_s`, so that the charts of all arms have the same scale. A chart has no points if the record lacks
// its series.
struct SavingCharts {
  Chart steps;
  Chart rates;
};
SavingCharts saving_charts(const SavingRuns& arm, double until_s, std::vector<std::string>& tiers,
                           const Output& output);
// The length in seconds of the run that saving_charts() shows.
double saving_length_s(const SavingRuns& arm);

}  // namespace penstock::report
