// What any record says of its tier, corpus, cache and figures. Shared by the sentences (verdicts.hpp), the
// report page and the views of the commands.
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

namespace penstock {

// What a record says, or "" / nothing where it does not.
std::string parameter_text(const Record& record, std::string_view name);  // numbers and booleans as text too
std::optional<double> parameter_number(const Record& record, std::string_view name);
std::optional<double> metric_value(const Record& record, std::string_view name);
const Metric* find_metric(const Record& record, std::string_view name);
inline std::optional<double> metric_value(const Record& record, const MetricInfo& metric) {
  return metric_value(record, metric.name);
}
inline const Metric* find_metric(const Record& record, const MetricInfo& metric) {
  return find_metric(record, metric.name);
}
// What the record moved per second: payload bytes where it counts them, else samples; nullptr without both.
const Metric* throughput(const Record& record);
// One metric over another: the median of the repeats' ratios where both have as many repeats.
std::optional<double> ratio_of(const Metric* over, const Metric* under);
std::string cache_text(const Record& record, std::string_view layer);
std::string environment_text(const Record& record, std::string_view name);
std::string corpus_text(const Record& record, std::string_view name);

// "disk=old": the labels in one line.
std::string label_text(const Record& record);
// Of rows of words, one for each title: only those words that differ somewhere.
std::vector<std::string> titles_of(const std::vector<std::vector<std::string>>& words);

// The data tier's name; "data" where none is given.
std::string tier_name(const Record& record);

// The name of the tier in a role, "" where the record has none.
std::string role_name(const Record& record, std::string_view role);
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

// Records with the same key belong together; "" leaves a record out. Groups and records in order of
// appearance.
using RecordList = std::vector<const Record*>;
std::vector<RecordList> grouped(std::span<const Record* const> records,
                                const std::function<std::string(const Record&)>& key);
std::vector<RecordList> grouped(std::span<const Record> records,
                                const std::function<std::string(const Record&)>& key);
RecordList firsts_of(const std::vector<RecordList>& groups);

// Its numbers may be shown and compared: it was measured to the end and nothing about it was wrong.
bool is_usable(const Record& record);

// A whole number of at least `least` that a usable record gives.
std::optional<std::uint64_t> whole_number(const Record& record, std::string_view name, double least);
// Takes `fresh` for the record of a place unless the one there is later.
void take_later(const Record*& there, const Record& fresh);
// "imagenet of 300 samples".
std::string corpus_title(const Record& record);

// "4 threads", "" where it does not say.
std::string threads_label(const Record& record);

// A figure as a cell of a table: "-" without it.
template <class Format>
std::string or_dash(const std::optional<double>& value, Format format) {
  return value ? format(*value) : std::string("-");
}

}  // namespace penstock
