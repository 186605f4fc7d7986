// Groups the records of `train` that may be compared: by prefetch depth, and by threads.
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

// The prefetch depth of a record that can be in a group of train records; empty for other records.
std::optional<uint64_t> train_prefetch(const Record& record);

// burns_processors(): whether the steps use processors that the workers need as well. several_accelerators():
// whether accelerators wait for each other.
bool burns_processors(const Record& record);
bool several_accelerators(const Record& record);

// Train records that differ only in their prefetch depth.
struct TrainGroup {
  std::string title;                     // "alexnet on disk"
  std::map<uint64_t, const Record*> at;  // prefetch depth -> the latest usable record with it
};
std::vector<TrainGroup> train_groups(std::span<const Record> records);

// Train records that differ only in threads and prefetch depth, with at least two numbers of threads.
struct TrainGrid {
  std::string title;
  // number of threads -> prefetch depth -> the latest usable record with both
  std::map<uint64_t, std::map<uint64_t, const Record*>> at;
  std::set<uint64_t> prefetches;  // all prefetch depths in the grid
};
std::vector<TrainGrid> train_grids(std::span<const Record> records);
// Whether the cells of the grid show accelerator utilization. Otherwise they show samples/s, since no record
// has a nominal step time.
bool grid_shows_utilization(const TrainGrid& grid);

// For how long the accelerator waited for input in an average step. If the metric has a sample for each step,
// this is their mean; the value of a whole run or repeat is divided by its number of steps.
std::optional<double> input_wait_per_step(const Record& record);

// Which share of the wait for input `prefetch` removed: 1 - (input wait per step with `prefetch`) / (the same
// with prefetch 0). Negative if the wait grew. Absent if one of the two was not measured.
std::optional<double> hidden_by_prefetch(const TrainGroup& group, uint64_t prefetch);

}  // namespace penstock
