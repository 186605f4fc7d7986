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

// The prefetch depth of a train record. Empty if the record is of another command or has no such depth.
std::optional<uint64_t> train_prefetch(const Record& record);

// burns_processors() says whether the steps use processors, which the workers need as well.
// several_accelerators() says whether there are several accelerators, which then wait for each other.
bool burns_processors(const Record& record);
bool several_accelerators(const Record& record);

// Train records that differ only in their prefetch depth.
struct TrainGroup {
  std::string title;  // "alexnet on disk"
  // Maps a prefetch depth to the latest usable record with it.
  std::map<uint64_t, const Record*> at;
};
std::vector<TrainGroup> train_groups(std::span<const Record> records);

// Train records that differ only in threads and prefetch depth, with at least two numbers of threads.
struct TrainGrid {
  std::string title;
  // Maps a number of threads and then a prefetch depth to the latest usable record with both.
  std::map<uint64_t, std::map<uint64_t, const Record*>> at;
  std::set<uint64_t> prefetches;  // all prefetch depths in the grid
};
std::vector<TrainGrid> train_grids(std::span<const Record> records);
// Whether the cells of the grid show accelerator utilization. False if no record has a nominal step time:
// then they show samples/s.
bool grid_shows_utilization(const TrainGrid& grid);

// For how long the accelerator waited for input in an average step. If the metric has one sample for each
// step, this is their mean. Otherwise a sample is the wait of a whole run, and is divided by the number of
// steps.
std::optional<double> input_wait_per_step(const Record& record);

// The share of the input wait that prefetching removed: 1 - (input wait per step with prefetch depth
// `prefetch`) / (input wait per step with prefetch depth 0). Negative if the wait grew. Absent if one of the
// two was not measured.
std::optional<double> hidden_by_prefetch(const TrainGroup& group, uint64_t prefetch);

}  // namespace penstock
