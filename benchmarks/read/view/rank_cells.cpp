#include "benchmarks/read/view/rank_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "benchmarks/read/read_metrics.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "results/cells/cells.hpp"

namespace penstock {
namespace {

// A text that is equal for all records of one group. "" for a record that belongs to no group. `count` is the
// parameter in which they differ: "ranks" or "depth".
std::string count_key(const Record& record, std::string_view count) {
  const bool has_counts = whole_number(record, count, 1) && whole_number(record, "threads", 1);
  return record.command == "read" && has_counts && find_metric(record, read_metrics::kPayloadRate) != nullptr
             ? read_work(record, count) + "|" + requested_cache_state(record) + "|" + label_text(record)
             : "";
}

// Whether equally many ranks of the records ran on different numbers of nodes.
bool nodes_differ(const RecordList& records) {
  std::map<uint64_t, size_t> nodes_of_ranks;
  return std::any_of(records.begin(), records.end(), [&](const Record* record) {
    const auto [at, inserted] =
        nodes_of_ranks.try_emplace(*whole_number(*record, "ranks", 1), node_count(*record));
    return !inserted && at->second != node_count(*record);
  });
}

std::string ranks_a_node(const Record& record) {
  return fmt::format("{:g} a node", double(*whole_number(record, "ranks", 1)) / double(node_count(record)));
}

std::vector<ReadCurve> curves_of(const RecordList& group, std::string_view count) {
  std::vector<ReadCurve> curves;
  const bool apart = count == "ranks" && nodes_differ(group);
  for (const RecordList& found : grouped(group, [&](const Record& record) {
         return std::to_string(*whole_number(record, "threads", 1)) + "|" + tier_name(record) +
                (apart ? "|" + ranks_a_node(record) : "");
       })) {
    const Record& first = *found.front();
    ReadCurve curve;
    curve.tier =
        fmt::format("{}, {}{}{}", tier_name(first), count_of(*whole_number(first, "threads", 1), "thread"),
                    count == "ranks" ? " a rank" : "", apart ? ", " + ranks_a_node(first) : "");
    for (const Record* const record : found)
      keep_newer(curve.by_count[*whole_number(*record, count, 1)], *record);
    if (curve.by_count.size() > 1) curves.push_back(std::move(curve));
  }
  return curves;
}

std::vector<ReadGroup> groups_against(std::span<const Record> records, std::string_view count) {
  std::vector<ReadGroup> groups;
  RecordList first_of_groups;
  for (const RecordList& found :
       grouped(records, [&](const Record& record) { return count_key(record, count); })) {
    const std::string cache = requested_cache_state(*found.front());
    ReadGroup group;
    group.title = cache.empty() ? "reading" : cache;
    group.curves = curves_of(found, count);
    if (group.curves.empty()) continue;
    groups.push_back(std::move(group));
    first_of_groups.push_back(found.front());
  }
  std::vector<std::vector<std::string>> texts = read_texts(first_of_groups, count);
  for (size_t i = 0; i < texts.size(); ++i)
    texts[i].insert(texts[i].begin(), requested_cache_state(*first_of_groups[i]));
  const std::vector<std::string> titles = titles_of(texts);
  for (size_t i = 0; i < groups.size(); ++i)
    if (!titles[i].empty()) groups[i].title = titles[i];
  return groups;
}

}  // namespace

std::vector<ReadGroup> rank_groups(std::span<const Record> records) {
  return groups_against(records, "ranks");
}

std::vector<ReadGroup> depth_groups(std::span<const Record> records) {
  return groups_against(records, "depth");
}

}  // namespace penstock
