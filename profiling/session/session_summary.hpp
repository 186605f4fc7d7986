// What a report says of a session in whole: totals, histograms, time, what was left out and what is missing.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_coverage.hpp"
#include "profiling/session/session_filter.hpp"
#include "profiling/session/session_segments.hpp"

namespace penstock {

// What came of several files.
struct FilesSum {
  std::uint64_t files = 0;  // that something was done to
  std::uint64_t directories = 0;
  LayerSum all;

  void add(const FileSum& file);
  void add(const FilesSum& more);
};

struct Drops {
  std::uint64_t records = 0;
  std::uint64_t operations = 0;
  std::uint64_t segments = 0;
  bool oldest_segments = false;  // some of these gave way to newer ones
  std::uint32_t no_room = 0;     // errno of a file that could not grow; 0: all could
  std::uint64_t spans = 0;
  std::uint64_t unnamed = 0;  // operations: they are counted, but to no file
};

Drops drops_of(const Session& session);

struct SessionSummary {
  FilesSum in;
  FilesSum left_out;                                              // by the filter
  std::uint64_t tried_in_vain = 0;                                // names of which every call failed
  std::array<std::uint64_t, PENSTOCK_SIZE_BUCKETS> file_sizes{};  // of files that were read or written
  std::int64_t begin_ns = 0;                                      // realtime: the first process's begin
  double span_s = 0;                                              // to the last one's end
  double wall_s = 0;  // during which any session went on: span_s without the time between sessions
  double io_s = 0;
  bool io_is_union = false;  // of the threads of each process; else their sum
  std::optional<SegmentFacts> segments;
  Drops drops;
  SessionCoverage coverage;
  bool python = false;
};

// Whether something was done to it: files that could not be opened leave counters, too.
bool was_touched(const FileSum& file);

// Calls `add` for all files in several threads, each with a place of its own (0 ...), and returns how many
// places there are. `left_out` likewise.
using PlacedEach = std::function<void(std::size_t place, const FileSum&)>;
std::size_t summing_threads();
void each_in_threads(const FileSums& sums, const SessionFilter& filter, const PlacedEach& each,
                     const PlacedEach& left_out);

// `also` is called for each wanted file, as by each_in_threads().
SessionSummary summarise(const Session& session, const FileSums& sums, const SessionFilter& filter,
                         const PlacedEach& also = {});

}  // namespace penstock
