// Reads from a record how long each stage of the pipeline was busy, starved and blocked.
#pragma once

#include <string>
#include <vector>

#include "miniapps/pipeline/batch_source.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Reads the metrics stage_busy_s.<stage>, stage_starved_s.<stage> and stage_blocked_s.<stage>. The result has
// the known stages first, in the order of the pipeline (list, read, decode, ...). Other stages follow, sorted
// by name.
std::vector<StageTally> stage_times(const Record& record);

// The share of its threads' time that a stage was busy; 0 if it had none. The threads' time of a stage that
// the workers serve is wall time x threads x ranks: the three times of a stage do not have a thread's start
// and its wait after its last sample.
double busy_share(const Record& record, const StageTally& stage);
// The same as text. "-" for the accelerator: its busy time is given as
// accelerator utilization, which leaves out the first step and the work between steps.
std::string busy_share_text(const Record& record, const StageTally& stage);

}  // namespace penstock
