// How a session's program read: by how many threads at the same time, and for how long. The source is either
// the recorded calls or the spans that the program itself reported.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "profiling/session/session.hpp"

namespace penstock {

// When one thread read, and how many bytes.
struct ThreadReading {
  int64_t first_ns = INT64_MAX;  // since 1970
  int64_t last_ns = INT64_MIN;
  uint64_t bytes = 0;
};
using ThreadReadings = std::map<std::pair<const ProcessFile*, uint32_t>, ThreadReading>;

// Adds `counters` to the ThreadReading of its thread, and returns this ThreadReading. `counters` is an entry
// with reads.
const ThreadReading& add_reading(ThreadReadings& threads, const penstock_counters& counters,
                                 const ProcessFile& process_file);

// The largest number of threads that read at the same time. A thread counts from its first read to its last.
// So if a program creates its threads anew for each epoch, only the threads of one epoch count. A thread with
// less than 1% of all bytes does not count: it read only a configuration file, for example.
uint64_t threads_at_once(const ThreadReadings& threads, uint64_t all_bytes);

// How a program read, according to its spans.
struct Reading {
  uint64_t bytes = 0;
  double wall_s = 0;
  double busy_s = 0;  // time in spans, added over threads
  uint64_t threads = 0;
  // the read rate in each repeat of a measurement; empty if the spans do not belong to repeats
  std::vector<double> bytes_per_s{};
};

// Calculates a Reading from the spans of kind PENSTOCK_READ. Its `bytes` are 0 if the session has no such
// spans. There are two kinds of them:
// - A span with a number is the read of the sample with that number. The time of all such spans runs from the
// first begin to the last end.
// - A span without a number belongs to a repeat of a measurement, and its `epoch` is the number of the
// repeat. The time between such spans does not count.
Reading reading_of_spans(const Session& session);

}  // namespace penstock
