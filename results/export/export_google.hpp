// Records as Google Benchmark writes them, for tools that read that: its own tools/compare.py above all.
//
// A benchmark is one metric of one cell, a repetition each of its samples. compare.py looks at times alone,
// so every one has seconds: a metric in s or ns as it is, a rate as the seconds that one unit of it took (of
// B/s: a MiB), the rate itself next to it as a counter. `cpu_time` repeats `real_time`: records have no
// processor time. What failed is an entry with its reason.
#pragma once

#include <string>

#include "results/record/store.hpp"

namespace penstock {

// "read/disk/threads:4/cache:cold/samples_per_s": a cell's name comes of what was asked for, so that the same
// cells of two sets have the same. Records of one cell are repetitions of it.
std::string google_benchmark_json(const RecordSet& set);

}  // namespace penstock
