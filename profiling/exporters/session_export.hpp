// A session for other tools, written as it is read: nothing but a name for each file is kept.
#pragma once

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"

namespace penstock {

// What came of a session.
struct ExportCounts {
  std::uint64_t records = 0;  // Darshan's of POSIX and STDIO; TensorBoard's scalars, histograms and texts
  std::uint64_t calls = 0;    // single ones, in DXT_POSIX or in the trace
  std::uint64_t calls_left_out = 0;
};

// A row for each wanted file, in the order of FileSums; the columns of the first line: path, type, size,
// processes, threads, first_ns, last_ns (since 1970), then what `profile report --json` calls its members,
// for all layers together, and each layer's bytes. Returns how many.
Result<std::uint64_t> export_csv(const FileSums& sums, const SessionFilter& filter, WholeFile& to);

// A trace for Chrome and Perfetto ("traceEvents"), times in microseconds since the session's begin. Each call
// that was kept (`profile run --trace`) stands twice: on the track of its thread, in its process, and on the
// track of its file, in a process called "files of ...". Spans that the program gave are on their threads.
// Returns how many events.
Result<std::uint64_t> export_chrome(const Session& session, const FileSums& sums, const SessionFilter& filter,
                                    WholeFile& to);

// A Darshan log (darshan_log.hpp) of all processes as ranks of one job (session_ranks.hpp): modules POSIX and
// STDIO with a record for each file and rank, and HEATMAP; where calls were kept, DXT_POSIX. Layers that move
// no bytes of their own (MPI-IO, HDF5) are not in it. `to` must be a file that can be gone back in.
Result<ExportCounts> export_darshan(const Session& session, const FileSums& sums, const SessionFilter& filter,
                                    WholeFile& to);

// What TensorBoard shows. `events`: bandwidth and operations over time, histograms of the sizes of reads,
// writes and files, and tables as text. `trace`: for its profile plugin, an XSpace with a line for each
// thread and one for each file; the longest kMostTracedCalls calls where more were kept; null for none.
inline constexpr std::uint64_t kMostTracedCalls = 1'000'000;
Result<ExportCounts> export_tensorboard(const Session& session, const FileSums& sums,
                                        const SessionFilter& filter, WholeFile& events, WholeFile* trace);

}  // namespace penstock
