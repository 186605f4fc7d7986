// Shows where the time of a training went, as a table of bars: from the whole wall time, each loss is
// subtracted, down to the time that the accelerator computed.
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
  double computing_s = 0;        // time that the steps computed; with several ranks, the mean
};

// Calculates the waterfall of a train record from its metrics wall_s, lost_s.*, validation_s and
// stage_busy_s.accelerator. The part of the wall time that no metric explains becomes one more loss: with
// checkpoints it is their time, and without them it is almost 0. If the record lacks wall_s, lost_s.* or the
// accelerator's time, the result has no losses.
Waterfall waterfall_of(const Record& record);

// The waterfall as HTML; "" if there is nothing to draw.
std::string waterfall_html(const std::string& title, const Record& record, PageState& state);

}  // namespace penstock::report
