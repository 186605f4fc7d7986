// Shows the time of a training as a falling bar and a table: the whole wall time, minus each loss, down to
// the time that its accelerator computed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "miniapps/pipeline/batch_source.hpp"
#include "results/record/record.hpp"
#include "results/report/page_state.hpp"

namespace penstock::report {

struct Waterfall {
  double wall_s = 0;
  std::vector<LostTime> losses;  // in the pipeline's order; only losses that took time
  double computing_s = 0;        // the time of all steps; the mean of the ranks
};

// Calculated from wall_s, lost_s.*, validation_s and stage_busy_s.accelerator of a train record. The rest of
// the wall becomes a loss of its own: the time of checkpoints, or almost 0 without them. Returns no losses if
// the record lacks the metrics.
Waterfall waterfall_of(const Record& record);

// Returns "" if there is nothing to draw.
std::string waterfall_html(const std::string& title, const Record& record, PageState& state);

}  // namespace penstock::report
