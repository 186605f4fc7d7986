// The figures of a report that cover a whole session: totals, histograms, times, and which data are missing.
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

// The sum over several files.
struct FilesSum {
  uint64_t files = 0;  // files with at least one operation
  uint64_t directories = 0;
  LayerSum all;

  void add(const FileSum& file);
  void add(const FilesSum& more);
};

struct Drops {
  uint64_t records = 0;
  uint64_t operations = 0;
  uint64_t segments = 0;
  bool oldest_segments = false;  // true: segments were dropped because newer ones replaced them
  uint32_t grow_errno = 0;       // errno if a file could not grow; 0: all files could
  uint64_t spans = 0;
  uint64_t unnamed_operations = 0;  // operations that were counted, but whose file is not known
};

Drops drops_of(const Session& session);

struct SessionSummary {
  FilesSum included;                                            // files that the filter wants
  FilesSum left_out;                                            // files that the filter left out
  uint64_t failed_names = 0;                                    // names of files for which every call failed
  std::array<uint64_t, PENSTOCK_SIZE_BUCKETS> files_by_size{};  // read or written files, by size
  int64_t begin_ns = 0;                                         // begin of the first process, since 1970
  // seconds from begin_ns to the last process's end
  double span_s = 0;
  double wall_s = 0;  // seconds in which at least one session ran: span_s without the pauses between sessions
  double io_s = 0;
  // true: io_s counts a moment once, however many threads were in a call; false: it adds up the threads
  bool io_is_union = false;
  std::optional<SegmentFacts> segments;
  Drops drops;
  SessionCoverage coverage;
  bool has_python = false;
};

// True if any operation on the file succeeded. Files that could not be opened have counters too.
bool has_operations(const FileSum& file);

// Calls `each` and `left_out` for all files, in several threads, and returns when all these threads have
// ended. `thread_index` is the number of the calling thread, from 0 to summing_thread_count() - 1, so that
// each thread can use memory of its own.
using EachInThread = std::function<void(size_t thread_index, const FileSum&)>;
size_t summing_thread_count();
void each_in_threads(const FileSums& sums, const SessionFilter& filter, const EachInThread& each,
                     const EachInThread& left_out);

// Calculates the figures of a whole session. `each_included` is called for each wanted file, in several
// threads; `thread_index` is as in each_in_threads().
SessionSummary summarise(const Session& session, const FileSums& sums, const SessionFilter& filter,
                         const EachInThread& each_included = {});

}  // namespace penstock
