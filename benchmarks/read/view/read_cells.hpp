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

// The thread count of a usable record of `read` or of the profiler. Nothing for any other record.
std::optional<uint64_t> read_threads(const Record& record);

// A key of everything that must be equal if two read records are compared, except tier, threads, cache and
// labels. `also_excluded`: one more parameter that may differ.
std::string read_work(const Record& record, std::string_view also_excluded = "");
// Corpus, parameters, host and labels of each record as a row of texts, from which titles_of() makes titles.
std::vector<std::vector<std::string>> read_texts(std::span<const Record* const> records,
                                                 std::string_view also_excluded = "");

// The records of one tier by thread count (from rank_groups(): by number of ranks).
struct ReadCurve {
  std::string tier;
  std::map<uint64_t, const Record*> by_count;  // threads -> the latest usable record
};

// Read records that differ only in tier and threads.
struct ReadGroup {
  std::string title;  // how this group differs from the others, such as "cold, order shuffled"; never ""
  std::string cache;
  // Everything except the cache state: groups with equal `work_and_labels` are the same work, cold and warm.
  std::string work_and_labels;
  std::string
      work;  // `work_and_labels` without the labels: groups with equal `work` and cache differ only in labels
  std::string label;       // the labels of its records, such as "disk=old"
  bool open_loop = false;  // read at a given rate (`--rate`), so it does not show the highest possible rate
  std::vector<ReadCurve> curves;  // curves of the tiers, in the order of their first records
  const ReadCurve* find(std::string_view tier) const;
};
std::vector<ReadGroup> read_groups(std::span<const Record> records);

// The rate of `record` divided by the rate with the fewest threads. The rates are paired by repeat if
// possible, because the repeats of a sweep are interleaved.
std::optional<double> scaling_ratio(const ReadCurve& curve, const Record& record);

}  // namespace penstock
