// Train records as cells of an experiment: which of them may be compared, by prefetch depth and threads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "results/record/record.hpp"

namespace penstock {

// The prefetch depth of a record that may be in a group.
std::optional<std::uint64_t> train_prefetch(const Record& record);

// Whether its steps take processors from the workers, and whether accelerators wait for each other.
bool burns_processors(const Record& record);
bool several_accelerators(const Record& record);

// Train records that differ in prefetch depth only, by depth.
struct TrainGroup {
  std::string title;                          // "alexnet on disk"
  std::map<std::uint64_t, const Record*> at;  // prefetch -> the latest usable record
};
std::vector<TrainGroup> train_groups(std::span<const Record> records);

// Train records that differ in threads and prefetch depth only, where there are several numbers of threads.
struct TrainGrid {
  std::string title;
  std::map<std::uint64_t, std::map<std::uint64_t, const Record*>> at;  // threads -> prefetch -> the latest
  std::set<std::uint64_t> prefetches;                                  // of all of them
};
std::vector<TrainGrid> train_grids(std::span<const Record> records);
// Its cells are about how busy an accelerator was; else, where none has a step, about samples/s.
bool grid_shows_utilization(const TrainGrid& grid);

// The time that the accelerator waited for input, for one step on average: samples for each step are
// averaged, a value for a run or repeat is divided by the number of steps.
std::optional<double> input_wait_per_step(const Record& record);

// 1 - (input wait per step with `prefetch`) / (the same with prefetch 0); negative when it got worse. Absent
// without both.
std::optional<double> hidden_by_prefetch(const TrainGroup& group, std::uint64_t prefetch);

}  // namespace penstock
