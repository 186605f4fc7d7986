#include "benchmarks/read/view/read_cells.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "benchmarks/read/read_metrics.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "results/cells/cells.hpp"
#include "results/record/work.hpp"

namespace penstock {
namespace {

// Names of parameters that are not part of the key or the title of a group. The number of threads may differ
// within a group, and the cache state is added separately. `more` is the name of one more such parameter, or
// "".
std::vector<std::string_view> excluded_parameters(std::string_view more) {
  std::vector<std::string_view> excluded{"threads", "cache"};
  if (!more.empty()) excluded.push_back(more);
  return excluded;
}

// "2 nodes"; "" for one node.
std::string nodes_text(const Record& record) {
  return node_count(record) > 1 ? count_of(node_count(record), "node") : "";
}

}  // namespace

std::optional<uint64_t> read_threads(const Record& record) {
  return record.command == "read" || record.command == "profile" ? whole_number(record, "threads", 1)
                                                                 : std::nullopt;
}

std::string read_data(const Record& record) {
  return corpus_text(record, "recipe") + "|" + corpus_text(record, "checksum") + "|" +
         corpus_text(record, "format") + "|" + environment_text(record, "host");
}

std::string read_work(const Record& record, std::string_view also_excluded) {
  return read_data(record) + "|" + (also_excluded == "ranks" ? "" : nodes_text(record)) + "|" +
         work_key(record, excluded_parameters(also_excluded));
}

std::vector<std::vector<std::string>> read_texts(std::span<const Record* const> records,
                                                 std::string_view also_excluded) {
  std::vector<std::vector<std::string>> rows = work_rows(records, excluded_parameters(also_excluded));
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].insert(rows[i].begin(), {corpus_title(*records[i]), corpus_text(*records[i], "format")});
    rows[i].push_back(also_excluded == "ranks" ? "" : nodes_text(*records[i]));
    rows[i].insert(rows[i].end(), {environment_text(*records[i], "host"), label_text(*records[i])});
  }
  return rows;
}

const ReadCurve* ReadGroup::find(std::string_view tier) const {
  for (const ReadCurve& curve : curves)
    if (curve.tier == tier) return &curve;
  return nullptr;
}

std::vector<ReadGroup> read_groups(std::span<const Record> records) {
  const std::vector<RecordList> record_groups = grouped(records, [](const Record& record) {
    return read_threads(record)
               ? requested_cache_state(record) + "|" + read_work(record) + "|" + label_text(record)
               : "";
  });
  const std::vector<std::string> titles = titles_of(read_texts(first_records(record_groups)));
  std::vector<ReadGroup> groups;
  for (size_t i = 0; i < record_groups.size(); ++i) {
    const Record& first = *record_groups[i].front();
    ReadGroup group;
    group.cache = requested_cache_state(first);
    group.work = read_work(first);
    group.label = label_text(first);
    group.work_and_labels = group.work + "|" + group.label;
    group.open_loop = find_metric(first, read_metrics::kOfferedRate) != nullptr;
    group.title =
        (group.cache.empty() ? "reading" : group.cache) + (titles[i].empty() ? "" : ", ") + titles[i];
    for (const RecordList& tier_records :
         grouped(record_groups[i], [](const Record& record) { return "|" + tier_name(record); })) {
      ReadCurve& curve = group.curves.emplace_back();
      curve.tier = tier_name(*tier_records.front());
      for (const Record* const record : tier_records)
        keep_newer(curve.by_count[*read_threads(*record)], *record);
    }
    groups.push_back(std::move(group));
  }
  // Cold groups come first, because they are about the tier.
  std::stable_partition(groups.begin(), groups.end(),
                        [](const ReadGroup& group) { return group.cache == "cold"; });
  return groups;
}

std::optional<ValueRange> rate_ratio(const Record& record, const Record& base) {
  for (const MetricInfo& rate : {read_metrics::kSampleRate, read_metrics::kPayloadRate})
    if (const auto ratio = ratio_of_pairs(find_metric(record, rate), find_metric(base, rate))) return ratio;
  return std::nullopt;
}

std::optional<ValueRange> scaling_ratio(const ReadCurve& curve, const Record& record) {
  return rate_ratio(record, *curve.by_count.begin()->second);
}

std::optional<double> cpu_seconds_per_gb(const Record& record) {
  const auto ratio = ratio_of_pairs(find_metric(record, read_metrics::kCpuTime),
                                    find_metric(record, read_metrics::kPayloadBytes));
  return ratio ? std::optional(ratio->middle * 1e9) : std::nullopt;
}

}  // namespace penstock
