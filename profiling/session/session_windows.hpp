// The windows of a session. A window is a session file that begins and ends while its process continues. It
// has one of three causes: a user attached to the process, the program asked for a window, or a range of
// training steps was to be recorded.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "profiling/session/session_filter.hpp"

namespace penstock {

struct SessionWindow {
  const ProcessFile* process_file = nullptr;
  uint32_t number = 0;     // number of the window in its process, from 1; 0: the file has no window event
  std::string_view label;  // points into the mapping
  double wall_s = 0;
  uint64_t files = 0;  // files that the filter wants and the window has counters for
  LayerSum all;
  double read_bytes_per_s() const { return wall_s > 0 ? double(all.bytes_read) / wall_s : 0; }
};

// Returns one SessionWindow for each session file, sorted by begin. Files that record the time between two
// windows are included.
std::vector<SessionWindow> windows_of(const Session& session, const SessionFilter& filter);

}  // namespace penstock
