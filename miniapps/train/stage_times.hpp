// Reads from a record how long each stage of the pipeline was busy, starved and blocked.
#pragma once

#include <vector>

#include "miniapps/pipeline/batch_source.hpp"
#include "results/record/record.hpp"

namespace penstock {

// From the metrics stage_busy_s.<stage>, stage_starved_s.<stage> and stage_blocked_s.<stage>. In the order of
// the pipeline as far as it is known (list, read, decode, ...), the others by name.
std::vector<StageTally> stage_times(const Record& record);

}  // namespace penstock
