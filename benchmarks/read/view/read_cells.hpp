// Groups read records so that records of a group may be compared: they differ only in tier and threads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/cells/cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// The thread count of a usable record of `read` or of the profiler. Absent for any other record.
std::optional<uint64_t> read_threads(const Record& record);

// A text that is equal for records of the same data on the same machine.
std::string read_data(const Record& record);
// A text that is equal for records that may be compared. It contains everything that must be equal, which is
// all except tier, threads, cache and labels. `also_excluded`: one more parameter that may differ.
std::string read_work(const Record& record, std::string_view also_excluded = "");
// For each record a row of texts: corpus, parameters, host and labels. titles_of() makes titles from them.
std::vector<std::vector<std::string>> read_texts(std::span<const Record* const> records,
                                                 std::string_view also_excluded = "");

// The records of one tier, by thread count. In a group of rank_groups(), by number of ranks.
struct ReadCurve {
  std::string tier;
  std::map<uint64_t, const Record*> by_count;  // number of threads or ranks -> the latest usable record
};

// Read records that differ only in tier and threads.
struct ReadGroup {
  std::string title;  // how this group differs from the others, such as "cold, order shuffled"; never ""
  std::string cache;
  // Everything that the records have in common except the cache state. Two groups with equal
  // `work_and_labels` are the same work, cold and warm.
  std::string work_and_labels;
  // `work_and_labels` without the labels. Two groups with equal `work` and cache state differ only in labels.
  std::string work;
  std::string label;  // the labels of its records, such as "disk=old"
  // Requests came at a given rate (`--rate`), so the group does not show the highest possible rate.
  bool open_loop = false;
  std::vector<ReadCurve> curves;  // curves of the tiers, in the order of their first records
  const ReadCurve* find(std::string_view tier) const;
};
std::vector<ReadGroup> read_groups(std::span<const Record> records);

// The rate of `record` divided by that of `base`: of samples, or of bytes if either has no rate of samples.
// Repeats are paired because those of a sweep are interleaved.
std::optional<ValueRange> rate_ratio(const Record& record, const Record& base);
// The same, divided by the rate of the record of `curve` that has the fewest threads.
std::optional<ValueRange> scaling_ratio(const ReadCurve& curve, const Record& record);

// Processor time for each 10^9 bytes of payload: the median of the repeats. Absent in records without it.
std::optional<double> cpu_seconds_per_gb(const Record& record);

}  // namespace penstock
