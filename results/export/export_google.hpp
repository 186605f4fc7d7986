// Writes records as the JSON of Google Benchmark, for tools that read it. The most important one is Google
// Benchmark's own tools/compare.py.
//
// A benchmark is one metric of one cell, and each sample is a repetition. compare.py compares only times, so
// every sample becomes seconds. A metric in s or ns is converted directly. A rate becomes the seconds for one
// unit (for B/s: for one MiB), and the rate itself is added as a counter. `cpu_time` repeats `real_time`,
// because records have no processor time. A record without usable numbers becomes an entry with its verdict
// and reason.
#pragma once

#include <string>

#include "results/record/store.hpp"

namespace penstock {

// The whole JSON text. Names are like "read/disk/threads:4/cache:cold/samples_per_s". They are made from the
// requested parameters. So a cell has the same name in every set of records, with one exception: if cells of
// one set would have the same name, what distinguishes them (such as a label) is added. The records of one
// cell are its repetitions.
std::string google_benchmark_json(const RecordSet& set);

}  // namespace penstock
