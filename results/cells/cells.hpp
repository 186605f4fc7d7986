// Reads facts and figures from a record of any command: tier, corpus, cache, parameters and metrics. Used by
// the sentences (verdicts.hpp), the report page and the views of the commands.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/metric.hpp"
#include "results/record/record.hpp"
#include "results/record/statistics.hpp"

namespace penstock {

struct Output;

// The following functions read one value of a record. They return "", nullopt or nullptr if the record does
// not have it.
std::string parameter_text(const Record& record, std::string_view name);  // as text, whatever its type
std::optional<double> parameter_number(const Record& record, std::string_view name);
std::optional<double> metric_value(const Record& record, std::string_view name);
const Metric* find_metric(const Record& record, std::string_view name);
inline std::optional<double> metric_value(const Record& record, const MetricInfo& metric) {
  return metric_value(record, metric.name);
}
inline const Metric* find_metric(const Record& record, const MetricInfo& metric) {
  return find_metric(record, metric.name);
}
// The throughput of the record: payload bytes per second, or samples per second if it has no payload rate.
// nullptr if it has neither.
const Metric* throughput(const Record& record);
// Of several values, such as the ratios that the repeats of two metrics give: the smallest, the one that
// represents them, and the largest.
struct ValueRange {
  double least = 0;
  double middle = 0;
  double most = 0;
};
// Both are absent if a metric is missing or `denominator` is 0. ratio_of_pairs() is for interleaved repeats:
// it has the ratio of each repeat to the other's repeat of the same number, and their median. If the numbers
// of repeats differ, and in ratio_of_any(), it is the ratio of the medians and that of any two repeats.
std::optional<ValueRange> ratio_of_pairs(const Metric* numerator, const Metric* denominator);
std::optional<ValueRange> ratio_of_any(const Metric* numerator, const Metric* denominator);
// The range of a metric: a 95% interval of the median if there are enough repeats, else from the lowest to
// the highest repeat.
struct RepeatRange {
  Interval range;
  bool is_interval = false;
};
RepeatRange repeat_range(const Metric& metric);
// What a range is: "95% of the median" or "lowest to highest".
std::string_view range_text(bool is_interval);
std::string cache_text(const Record& record, std::string_view layer);
std::string environment_text(const Record& record, std::string_view name);
// The number of nodes on which the ranks of a record ran. 1 if the record does not say it.
size_t node_count(const Record& record);
std::string corpus_text(const Record& record, std::string_view name);

// The record's labels in one line: "disk=old".
std::string label_text(const Record& record);
// Makes a title for each row of texts. It has only those columns in which the rows differ, joined by commas.
// All rows must have the same number of columns.
std::vector<std::string> titles_of(const std::vector<std::vector<std::string>>& rows);

// The data tier's name; "data" if the record has none.
std::string tier_name(const Record& record);

// The name of the tier that has this role in the record, such as "checkpoint"; "" if there is none.
std::string role_name(const Record& record, std::string_view role);
// Makes the names of different data tiers different. If two have the same name but another back end or other
// options, they become "disk (posix)" and "disk (posix, direct=1)". Tiers that differ only in the path keep
// their name, because the next run uses another folder on the same disk.
void distinguish_tiers(std::span<Record* const> records);
// A name for the corpus: its recipe or, if Penstock did not generate it, the name of its folder. "data" if
// the record has neither.
std::string corpus_name(const Record& record);
// The requested cache state: the parameter `cache`. If the record lacks it, the actual state of the client's
// data cache.
std::string requested_cache_state(const Record& record);
// The cache state as text: "in memory", "cache bypassed", "no client cache", or "cold unverified" if the
// machine does not report what is cached. In all other cases it is the requested state; a verdict such as
// not_cold says if that was not reached.
std::string cache_state(const Record& record);

// The options that make the data tier slower, smaller or faulty: "limit=50MB/s, latency=2ms". "" if it has
// none of them.
std::string emulation(const Record& record);
std::string emulation(const Json& tier);  // the same for one tier; `tier` is its JSON object in Record::tiers

// Puts records into groups with equal `key`. A record whose key is "" is left out. Groups, and the records in
// each, are in the order in which they first appear.
using RecordList = std::vector<const Record*>;
std::vector<RecordList> grouped(std::span<const Record* const> records,
                                const std::function<std::string(const Record&)>& key);
std::vector<RecordList> grouped(std::span<const Record> records,
                                const std::function<std::string(const Record&)>& key);
RecordList first_records(const std::vector<RecordList>& groups);

// Whether the record's numbers may be shown and compared. They may not if its verdict makes them invalid
// (verdict_exit_code() is not 0).
bool is_usable(const Record& record);

// A parameter as a whole number. Absent if the record is not usable, or the number is below `least` or above
// 1e9.
std::optional<uint64_t> whole_number(const Record& record, std::string_view name, double least);
// Sets `newest` to `record`, unless `newest` was started later. So only the newest record of the same work is
// shown.
void keep_newer(const Record*& newest, const Record& record);
// The corpus as a text: "imagenet of 300 samples".
std::string corpus_title(const Record& record);

// The thread count as a text: "4 threads"; "" if the record does not give it.
std::string threads_label(const Record& record);

// Text for a table's cell: the figure, formatted by `format`, or "-" if it is absent.
template <class Format>
std::string or_dash(const std::optional<double>& value, Format format) {
  return value ? format(*value) : std::string("-");
}
// The same for a format that may group digits.
inline std::string or_dash(const std::optional<double>& value, std::string (*format)(double, const Output&),
                           const Output& output) {
  return value ? format(*value, output) : std::string("-");
}

}  // namespace penstock
