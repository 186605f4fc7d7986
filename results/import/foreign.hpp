// What other tools measured, as records: the JSON of Google Benchmark and of fio. Content decides, not the
// name.
//
// Google Benchmark: a record for each run, its repetitions as samples. `real_time_s` and `cpu_time_s` (of an
// iteration), `payload_bytes_per_s` (its bytes_per_second), `samples_per_s` (items_per_second), and its other
// counters under their own names. Aggregates are left out: they come from the samples.
//
// fio (version 2 on, json and json+, by --client too): a record for each job and direction that it did
// something in; clones of a job (numjobs without group_reporting) are one record, with the job's own wall
// time around them all. Rates are bytes and operations a second (`payload_bytes_per_s`, `ops_per_s`);
// latencies are its own percentiles, merged over clones where json+ has their distributions, and else left
// out: percentiles are never averaged.
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
  std::vector<std::string> problems;  // what of it could not be taken over, and why
};

// Nothing where `text` is not of these tools. What stands before and behind the JSON (fio's notes) is passed
// over.
std::optional<Imported> import_foreign(std::string_view text);

// The two of them, on JSON that is theirs.
bool is_google_benchmark(const Json& json);
Imported import_google_benchmark(const Json& json, const std::string& id);
bool is_fio(const Json& json);
Imported import_fio(const Json& json, const std::string& id);

// Seconds since 1970 as a record has its time, "" for what no clock says.
std::string utc_time(double seconds);

// Operations of fio, which has no samples.
inline constexpr MetricInfo kOpRate{"ops_per_s", "1/s", Better::higher};

// All metrics that their records can have, in order of importance.
std::span<const MetricInfo> google_benchmark_metrics();
std::span<const MetricInfo> fio_metrics();

// Of imported records, which know their place by its path alone: the tier is called as the records of a tier
// on the same place call it (by root, else by mount point), so that a peer is next to it.
void name_places(std::span<Record* const> records);

}  // namespace penstock
