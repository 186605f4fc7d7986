// How long each stage of a training's pipeline was busy, starved and blocked, from its record.
#pragma once

#include <vector>

#include "miniapps/pipeline/batch_source.hpp"
#include "results/record/record.hpp"

namespace penstock {

// From stage_busy_s.<stage> and its sisters, in the pipeline's order as far as known (list, read, decode,
// ..., else by name).
std::vector<StageTally> stage_times(const Record& record);

}  // namespace penstock
