// Functions that write a session for other tools. They read the session in pieces while they write, and keep
// the names of the files in memory. export_darshan() and export_tensorboard() also keep some numbers for each
// recorded call, less than 100 bytes.
#pragma once

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"

namespace penstock {

// How much of a session an exporter wrote.
struct ExportCounts {
  // Darshan: records of POSIX and STDIO; TensorBoard: scalars, histograms and texts
  uint64_t records = 0;
  uint64_t calls = 0;  // single calls in DXT_POSIX or in the trace
  uint64_t calls_left_out = 0;
};

// Writes a CSV row for each wanted file, in the order of FileSums, and returns the number of rows. The first
// line names the columns. First come path, type, size, processes, threads, first_ns and last_ns (since 1970).
// The other columns are the numbers that `profile report --json` has for a file: those of all layers
// together, and the bytes of each layer.
Result<uint64_t> export_csv(const FileSums& sums, const SessionFilter& filter, WholeFile& to);

// Writes a trace for Chrome and Perfetto ("traceEvents"). Returns the number of its events for calls and
// spans, without those for marks and names. Times are in microseconds since the start of the session. Each
// recorded call (`profile run --trace`) appears twice: on the track of its thread, and on the track of its
// file, which is in a process "files of ...". Spans of the program are on the tracks of their threads.
Result<uint64_t> export_chrome(const Session& session, const FileSums& sums, const SessionFilter& filter,
                               WholeFile& to);

// Writes a Darshan log (darshan_log.hpp). All processes are ranks of one job (session_ranks.hpp).
// The modules POSIX and STDIO have a record for each file and rank. The module HEATMAP needs no recorded
// calls; DXT_POSIX is written only if calls were recorded. A module without records is left out. Calls of
// MPI-IO and HDF5 are left out, because the layers below them count the same bytes. `to` must support
// seeking.
Result<ExportCounts> export_darshan(const Session& session, const FileSums& sums, const SessionFilter& filter,
                                    WholeFile& to);

inline constexpr uint64_t kMostTracedCalls = 1'000'000;
// Writes files for TensorBoard. `events` gets bandwidth and operations over time, histograms of the sizes of
// reads, writes and files, and tables as text. `trace` gets an XSpace for the profile plugin: a line of calls
// for each thread and each file, with the kMostTracedCalls longest calls. If `trace` is null, no XSpace is
// written.
Result<ExportCounts> export_tensorboard(const Session& session, const FileSums& sums,
                                        const SessionFilter& filter, WholeFile& events, WholeFile* trace);

}  // namespace penstock
