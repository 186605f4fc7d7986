// How long a training is expected to take.
#pragma once

#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/train/train_plan.hpp"
#include "results/record/time_plan.hpp"

namespace penstock {

// The names of the parts of a training's time plan.
inline constexpr std::string_view kTrainingPart = "training";
inline constexpr std::string_view kInputAlonePart = "input alone";
inline constexpr std::string_view kSearchPart = "search";  // --find-accelerators, in place of both

// Adds the parts to plan.time_plan, which must be set. Reads and transforms a few samples of each tier to
// learn how long the input takes. Errors in them are not reported: the training reports them.
void plan_training_time(const TrainPlan& plan);

// Starts a part on this tier (TimePlan::begin()). Always true if there is no time plan.
bool begin_part(const TrainPlan& plan, std::string_view part, const Tier& tier);

// Whether a call on the tier may not return for a long time: it is on a network, or its latency is emulated.
// The training gives up such a tier after --stall-timeout. Nothing else could be given up, so nothing else
// may use the tier before.
bool may_hang(const Tier& tier);

}  // namespace penstock
