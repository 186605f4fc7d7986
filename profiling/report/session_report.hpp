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
  std::vector<FileSum> most_bytes;
  std::vector<FileSum> most_time;
  std::vector<FileSum> biggest;
  struct NotShown {  // what the lists have no room for
    std::uint64_t rows = 0;
    std::uint64_t most_bytes = 0;
    std::uint64_t most_time = 0;
    std::uint64_t biggest = 0;
  } not_shown;
};

// `by`: "file", "mount", "process" or "directory", or "all" (rows are directories then); lists of `most`
// entries at most.
SessionReport inspect_session(const Session& session, const FileSums& sums, const SessionFilter& filter,
                              std::string_view by, std::size_t most);

}  // namespace penstock
