// Where a training's time went, from all of it down to what its accelerator computed: a table with a falling
// bar.
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
  std::vector<LostTime> losses;  // to what, in the pipeline's order; only those that took time
  double computing_s = 0;        // what is left: all steps, the mean of the ranks
};

// From wall_s, lost_s.*, validation_s and stage_busy_s.accelerator of a train record, which leave of the wall
// what checkpoints held up, or else next to nothing. No losses: nothing to draw.
Waterfall waterfall_of(const Record& record);

// "" where there is nothing to draw.
std::string waterfall_html(const std::string& title, const Record& record, PageState& state);

}  // namespace penstock::report
