// A session for other tools, written as it is read: nothing but a name for each file is kept.
#pragma once

#include "io_backends/base/result.hpp"
#include "io_backends/base/whole_file.hpp"
#include "profiling/file_sums.hpp"
#include "profiling/session_filter.hpp"

namespace penstock {

// A row for each wanted file, in the order of FileSums; the columns of the first line: path, type, size,
// processes, threads, first_ns, last_ns (since 1970), then what `profile report --json` calls its members,
// for all layers together, and each layer's bytes.
Result<void> export_csv(const FileSums& sums, const SessionFilter& filter, WholeFile& to);

// A trace for Chrome and Perfetto ("traceEvents"), times in microseconds since the session's begin. Each call
// that was kept (`profile run --trace`) stands twice: on the track of its thread, in its process, and on the
// track of its file, in a process called "files of ...". Spans that the program gave stand on their threads.
struct ChromeCounts {
  std::uint64_t calls = 0;
  std::uint64_t spans = 0;
};
Result<ChromeCounts> export_chrome(const Session& session, const FileSums& sums, const SessionFilter& filter,
                                   WholeFile& to);

}  // namespace penstock
