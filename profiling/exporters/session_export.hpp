// The functions that write a session for other tools. They write while they read, and keep only a name for
// each file in memory.
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

// Writes a CSV row for each wanted file, in the order of FileSums. The first line names the columns: path,
// type, size, processes, threads, first_ns, last_ns (since 1970). Further columns are the members that a file
// has in `profile report --json`, for all layers together, and the bytes of each layer. Returns the number of
// rows.
Result<uint64_t> export_csv(const FileSums& sums, const SessionFilter& filter, WholeFile& to);

// Writes a trace for Chrome and Perfetto ("traceEvents"), with times in microseconds since the session's
// begin. Each recorded call (`profile run --trace`) appears twice: on the track of its thread in its process,
// and on the track of its file in a process "files of ...". Spans of the program are on the tracks of their
// threads. Returns the number of events.
Result<uint64_t> export_chrome(const Session& session, const FileSums& sums, const SessionFilter& filter,
                               WholeFile& to);

// Writes a Darshan log (darshan_log.hpp) with all processes as ranks of one job (session_ranks.hpp). The
// modules POSIX and STDIO have a record for each file and rank. HEATMAP needs no recorded calls; DXT_POSIX is
// written only if calls were recorded. A module without records is left out. So are layers that count the
// bytes of other layers (MPI-IO, HDF5). `to` must support seeking.
Result<ExportCounts> export_darshan(const Session& session, const FileSums& sums, const SessionFilter& filter,
                                    WholeFile& to);

// Writes files for TensorBoard. `events` gets bandwidth and operations over time, histograms of the sizes of
// reads, writes and files, and tables as text. `trace` gets an XSpace for the profile plugin, with a line for
// each thread and each file. It contains at most the kMostTracedCalls longest calls. If `trace` is null, no
// trace is written.
inline constexpr uint64_t kMostTracedCalls = 1'000'000;
Result<ExportCounts> export_tensorboard(const Session& session, const FileSums& sums,
                                        const SessionFilter& filter, WholeFile& events, WholeFile* trace);

}  // namespace penstock
