// Turns results of other tools into records: the JSON of Google Benchmark and of fio. The content decides
// which tool it is, not the file name.
//
// Google Benchmark: one record for each run, with its repetitions as samples. Metrics are `real_time_s` and
// `cpu_time_s` (of one iteration), `payload_bytes_per_s` (its bytes_per_second), `samples_per_s` (its
// items_per_second), and its other counters under their own names. Aggregates are left out, since they are
// computed from the samples.
//
// fio (version 2 and later, json and json+, also with --client): one record for each job and direction (read,
// write, trim) in which the job did something. A job that did nothing becomes one failed record. Clones of a
// job (numjobs without group_reporting) become one record, and the wall time is that of the slowest clone.
// Rates are bytes and operations per second (`payload_bytes_per_s`, `ops_per_s`). Latencies are fio's own
// percentiles. Those of several clones are merged from the distributions of json+. Without these they are
// left out: percentiles are never averaged.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/record/record.hpp"

namespace penstock {

struct Imported {
  std::vector<Record> records;
  std::vector<std::string> problems;  // what could not be imported, and why
};

// Imports the output of Google Benchmark or of fio. Absent if `text` is from neither. Text before and after
// the JSON (notes of fio) is skipped.
std::optional<Imported> import_foreign(std::string_view text);

// Whether the text is complete JSON of any program, or begins with a line of JSON.
bool is_json(std::string_view text);
// Where and why the JSON parser stopped, such as "byte 2001, at the end: invalid number"; "" if all of the text
// is JSON. What is printed before an object that begins a line does not count.
std::string json_fault(std::string_view text);

// is_google_benchmark() and is_fio() recognize the JSON of a tool. import_google_benchmark() and import_fio()
// make records of it, and may only be called if the JSON is from that tool. `id` is the prefix of the
// records' ids.
bool is_google_benchmark(const Json& json);
Imported import_google_benchmark(const Json& json, const std::string& id);
bool is_fio(const Json& json);
Imported import_fio(const Json& json, const std::string& id);

// Formats a time, given in seconds since 1970, as records write it. "" for a time that cannot be right.
std::string utc_time(double seconds);

// The rate of fio's operations. They are not called samples, because fio does not know samples.
inline constexpr MetricInfo kOpRate{"ops_per_s", "1/s", Better::higher};

// All metrics that records of Google Benchmark, and those of fio, can have. The most important come first.
std::span<const MetricInfo> google_benchmark_metrics();
std::span<const MetricInfo> fio_metrics();

// Gives names to the tiers of fio's records, which have only a path. A tier gets the name that penstock's own
// records use for a folder above this path: the nearest root of a tier, or else the nearest mount point. So
// the results of both tools are shown together.
void name_fio_tiers(std::span<Record* const> records);

}  // namespace penstock
