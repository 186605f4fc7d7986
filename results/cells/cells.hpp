// Looking at records as cells of an experiment: which tier, how many threads, and which of them may be
// compared. Shared by the sentences (verdicts.hpp) and the report page.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/record/record.hpp"

namespace penstock {

// What a record says, or "" / nothing where it does not.
std::string parameter_text(const Record& record, std::string_view name);  // numbers and booleans as text too
std::optional<double> parameter_number(const Record& record, std::string_view name);
std::optional<double> metric_value(const Record& record, std::string_view name);
const Metric* find_metric(const Record& record, std::string_view name);
std::string cache_text(const Record& record, std::string_view layer);
std::string environment_text(const Record& record, std::string_view name);

// "disk=old": the labels in one line.
std::string label_text(const Record& record);
// Of rows of words, one for each title: only those words that differ somewhere.
std::vector<std::string> titles_of(const std::vector<std::vector<std::string>>& words);

// The data tier's name; "data" where none is given.
std::string tier_name(const Record& record);

// Of a training: whether its steps take processors from the workers, and whether accelerators wait for each
// other.
bool burns_processors(const Record& record);
bool several_accelerators(const Record& record);
// Gives data tiers that share no more than their name names of their own, by back end and options: "disk
// (posix)" and "disk (posix, direct=1)". Their paths may differ: the next run has another folder on the same
// disk.
void distinguish_tiers(std::span<Record* const> records);
// The corpus by its recipe, "data" where none is given.
std::string corpus_name(const Record& record);
// The cache state that was asked for: the `cache` parameter, else what the client's data was.
std::string cache_name(const Record& record);
// The state that it was really in: what was asked for, or "in memory", "cache bypassed", "cold unverified"
// (the machine could not tell).
std::string cache_state(const Record& record);

// The options that make the data tier slower, smaller or faulty than what it stands on: "limit=50MB/s,
// latency=2ms"; "" for a real one.
std::string emulation(const Record& record);
std::string emulation(const Json& tier);  // of one tier of a record

// Its numbers may be shown and compared: it was measured to the end and nothing about it was wrong.
bool is_usable(const Record& record);

// What must be equal for two read records to be compared, besides tier, threads, cache and labels. `but`: a
// parameter that may differ.
std::string read_work(const Record& record, std::string_view but = "");
// The texts that may tell such work apart; a row for each record (titles_of()).
std::vector<std::vector<std::string>> read_texts(std::span<const Record* const> records,
                                                 std::string_view but = "");

// How much of something one tier moves at each thread count.
struct ReadCurve {
  std::string tier;
  std::map<std::uint64_t, const Record*> at;  // threads -> the latest usable record
};

// Read records that differ in tier and threads only.
struct ReadGroup {
  std::string title;  // "cold, order shuffled" ...: what tells this group from the others; never ""
  std::string cache;
  std::string rest;   // everything but the cache: groups with equal `rest` are the same work cold and warm
  std::string work;   // `rest` without the labels: groups with equal `work` and cache differ in labels only
  std::string label;  // "disk=old"
  bool open_loop = false;  // read at a rate that was given (`--rate`): says nothing of what could be read
  std::vector<ReadCurve> curves;  // in the order of their first record
  const ReadCurve* find(std::string_view tier) const;
};
std::vector<ReadGroup> read_groups(std::span<const Record> records);

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

// Usable read, train and bench records that are in no group because a later one did the same work.
std::set<const Record*> superseded(std::span<const Record> records);

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

// The time that the accelerator waited for input, for one step on average. From `input_wait_s`: samples for
// each step are averaged; a value for a run or repeat is divided by `steps`.
std::optional<double> input_wait_per_step(const Record& record);

}  // namespace penstock
