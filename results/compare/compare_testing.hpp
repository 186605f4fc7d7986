// For tests only: makes sets of records to compare.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/random.hpp"
#include "results/record/records_testing.hpp"
#include "results/record/store.hpp"

namespace penstock {

inline RecordSet set_of(std::vector<Record> records) {
  RecordSet set;
  set.files.emplace_back("runs/x.jsonl");
  for (Record& record : records) {
    set.records.push_back({std::move(record), "runs/x.jsonl", set.records.size() + 1});
  }
  return set;
}

// One run of `penstock read` with this rate in MiB/s (NaN stays NaN) and nothing else.
inline Record run_of(double mib_per_s, int number = 0) {
  Record record = read_cell("disk", 4, "cold", 1);
  record.id += "-" + std::to_string(number);
  record.metrics.clear();
  record.metrics["payload_bytes_per_s"] = {"B/s", Better::higher, "repeat", {mib_per_s * 1048576}};
  return record;
}

// Like run_of(), but the run belongs to an arm of an interleaved suite.
inline Record turn_of(const std::string& arm, uint64_t index, double mib_per_s) {
  Record record = run_of(mib_per_s, int(index));
  record.pair = Json{{"suite", "s"}, {"index", index}, {"arm", arm}};
  return record;
}

// `n` values around `middle` with 2% of noise.
inline std::vector<double> noise(size_t n, double middle, uint64_t seed) {
  const RandomStream draws(seed, "noise");
  std::vector<double> values;
  for (uint64_t i = 0; i < n; ++i) values.push_back(middle * std::exp(0.02 * draws.normal(i)));
  return values;
}

inline RecordSet arm_of_suite(const std::string& arm, const std::vector<double>& rates) {
  std::vector<Record> records;
  for (size_t i = 0; i < rates.size(); ++i) records.push_back(turn_of(arm, i, rates[i]));
  return set_of(std::move(records));
}

inline RecordSet runs_with(const std::vector<double>& rates) {
  std::vector<Record> records;
  for (size_t i = 0; i < rates.size(); ++i) records.push_back(run_of(rates[i], int(i)));
  return set_of(std::move(records));
}

}  // namespace penstock
