// Read records as cells of an experiment: which tier and threads, and which of them may be compared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/record/record.hpp"

namespace penstock {

// Threads of a record that may be in a group of reading; a session of the profiler can be in one too.
std::optional<std::uint64_t> read_threads(const Record& record);

// What must be equal for two read records to be compared, besides tier, threads, cache and labels. `but`: a
// parameter that may differ.
std::string read_work(const Record& record, std::string_view but = "");
// What may tell such work apart, as text; a row for each record (titles_of()).
std::vector<std::vector<std::string>> read_texts(std::span<const Record* const> records,
                                                 std::string_view but = "");

// How much of something one tier moves at each thread count (of rank_groups(): at each number of ranks).
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

// A record of the curve against that with the fewest threads: repeats of a sweep are measured in turn.
std::optional<double> scaling_ratio(const ReadCurve& curve, const Record& record);

}  // namespace penstock
