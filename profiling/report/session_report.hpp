// All that a report shows, gathered in one walk over a session's files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profiling/session/roll_up.hpp"
#include "profiling/session/session_summary.hpp"

namespace penstock {

struct SessionReport {
  MountTable mount_table;  // the names of `mounts` lie here
  SessionSummary summary;
  std::vector<RollUp> mounts;
  std::vector<RollUp> rows;           // by mount or by directory, as asked for
  std::vector<ProcessSum> processes;  // all, by bytes moved, then by time
  std::uint64_t rows_not_shown = 0;
  TopFiles most_bytes;
  TopFiles most_time;
  TopFiles biggest;
};

// `by`: "file", "mount", "process" or "directory", or "all" (rows are directories then); lists of `most`
// entries at most.
SessionReport inspect_session(const Session& session, const FileSums& sums, const SessionFilter& filter,
                              std::string_view by, std::size_t most);

}  // namespace penstock
