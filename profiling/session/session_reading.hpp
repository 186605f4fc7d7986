// How a session's program read: by how many threads at once, and for how long, as the calls tell or as the
// program itself says by its spans.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "profiling/session/session.hpp"

namespace penstock {

// When one thread read, and how much.
struct ThreadReading {
  std::int64_t first_ns = INT64_MAX;  // realtime
  std::int64_t last_ns = INT64_MIN;
  std::uint64_t bytes = 0;
};
using ThreadReadings = std::map<std::pair<const SessionImage*, std::uint32_t>, ThreadReading>;

// What an entry that read bytes adds to its thread, which is returned.
const ThreadReading& add_reading(ThreadReadings& threads, const penstock_counters& counters,
                                 const SessionImage& image);

// How many threads read at the same time, at most: from their first read to their last. A pool that is made
// anew for each epoch counts once. Who reads next to nothing (a configuration file) is no reader.
std::uint64_t threads_at_once(const ThreadReadings& threads, std::uint64_t all_bytes);

// What a measurement was about.
struct Reading {
  std::uint64_t bytes = 0;
  double wall_s = 0;
  double busy_s = 0;  // in spans, added over threads
  std::uint64_t threads = 0;
  std::vector<double> bytes_per_s{};  // of each repeat that the program told apart; none: all as one
};

// From spans of reading; no bytes where there are none. A span of one sample has its number, and the time of
// all of them is from the first one's begin to the last one's end; those without a number are repeats of a
// measurement, told apart by their epochs, and what was between them is no time of theirs.
Reading reading_of_spans(const Session& session);

}  // namespace penstock
