// Groups read records into cells (tier and threads) that may be compared.
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

// The thread count of a record, if it may be in such a group. Records of `read` and of the profiler may.
std::optional<std::uint64_t> read_threads(const Record& record);

// A key of everything that must be equal if two read records are compared, except tier, threads, cache and
// labels. `but`: one more parameter that may differ.
std::string read_work(const Record& record, std::string_view but = "");
// The parameters in which such records may differ, as text, with a row for each record. See titles_of().
std::vector<std::vector<std::string>> read_texts(std::span<const Record* const> records,
                                                 std::string_view but = "");

// The records of one tier by thread count (from rank_groups(): by number of ranks).
struct ReadCurve {
  std::string tier;
  std::map<std::uint64_t, const Record*> at;  // threads -> the latest usable record
};

// Read records that differ only in tier and threads.
struct ReadGroup {
  std::string title;  // how this group differs from the others, such as "cold, order shuffled"; never ""
  std::string cache;
  // Everything except the cache state: groups with equal `rest` are the same work, cold and warm.
  std::string rest;
  std::string work;   // `rest` without the labels: groups with equal `work` and cache differ only in labels
  std::string label;  // the labels of its records, such as "disk=old"
  bool open_loop = false;  // read at a given rate (`--rate`), so it does not show the highest possible rate
  std::vector<ReadCurve> curves;  // curves of the tiers, in the order of their first records
  const ReadCurve* find(std::string_view tier) const;
};
std::vector<ReadGroup> read_groups(std::span<const Record> records);

// The rate of a record relative to that with the fewest threads. The ratio is paired by repeat if possible,
// because the repeats of a sweep are interleaved.
std::optional<double> scaling_ratio(const ReadCurve& curve, const Record& record);

}  // namespace penstock
