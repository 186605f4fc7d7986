// Gathers the figures of a report on a session: totals, mounts, folders, processes, and the files with the
// most bytes, the most time and the largest size. The windows (session_windows.hpp) are not among them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profiling/session/roll_up.hpp"
#include "profiling/session/session_summary.hpp"

namespace penstock {

struct SessionReport {
  MountTable mount_table;  // owns the texts to which `mounts` refers
  SessionSummary summary;
  std::vector<RollUp> mounts;
  std::vector<RollUp> rows;           // one row for each mount or directory, as the argument `by` selects
  std::vector<ProcessSum> processes;  // all processes, most bytes first; only if `by` is "process" or "all"
  uint64_t rows_not_shown = 0;
  TopFiles most_bytes;
  TopFiles most_time;
  TopFiles biggest;
};

// Gathers the figures of a report. `by` is what the report lists: "file", "mount", "process", "directory",
// "window" or "all". With "all", `rows` has directories. `rows` and the three lists of files have at most
// `most` entries each, and the lists never more than 10,000.
SessionReport inspect_session(const Session& session, const FileSums& sums, const SessionFilter& filter,
                              std::string_view by, size_t most);

}  // namespace penstock
