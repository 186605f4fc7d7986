// Shows the time of a training as a table of falling bars: the whole wall time, minus each loss, down to the
// time that its accelerator computed.
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
  std::vector<LostTime> losses;  // only losses that took time, in the order of the pipeline
  double computing_s = 0;        // time that the steps computed; with several ranks their mean
};

// Calculates the waterfall of a train record from its metrics wall_s, lost_s.*, validation_s and
// stage_busy_s.accelerator. The rest of the wall time becomes a loss of its own: the time of checkpoints, or
// almost 0 without them. Returns no losses if the record lacks the metrics.
Waterfall waterfall_of(const Record& record);

// The waterfall as HTML; "" if there is nothing to draw.
std::string waterfall_html(const std::string& title, const Record& record, PageState& state);

}  // namespace penstock::report
