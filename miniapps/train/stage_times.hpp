// How long each stage of a training's pipeline was busy, starved and blocked, from its record.
#pragma once

#include <string>
#include <vector>

#include "results/record/record.hpp"

namespace penstock {

// A mini-app's stages, from stage_busy_s.<stage> and its sisters, the pipeline's order as far as known (list,
// read, decode, ..., else by name).
struct StageTimes {
  std::string stage;
  double busy_s = 0;
  double starved_s = 0;
  double blocked_s = 0;
  double total_s() const { return busy_s + starved_s + blocked_s; }
};
std::vector<StageTimes> stage_times(const Record& record);

}  // namespace penstock
