// Processes that record now, watched and asked from outside by their sessions' files: which there are,
// whether they keep single calls, and what they have done up to now. Nothing runs in them for it: what is
// asked is one word in a page that they have mapped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

struct FoundSession;  // profiling/attach/target.hpp

// One process that records now, by its newest file in a session's folder.
struct RecordingProcess {
  std::uint32_t pid = 0;
  std::uint64_t start = 0;  // in the kernel's own ticks: tells two of one pid apart
  std::string host;
  int rank = -1;                  // that a launcher gave it; -1: none
  std::string file;               // absolute, if the folder is
  std::string command;            // its words, with a blank between them
  std::uint32_t started = 0;      // enum penstock_begun
  std::int64_t since_ns = 0;      // realtime: when this file began
  bool trace = false;             // it keeps every call
  std::uint64_t trace_bytes = 0;  // of calls that it keeps at most; 0: no limit
  // Whose word it began with, as a fork's child: its parent's, whose that one began with, and so on.
  std::vector<std::uint32_t> inherited_from;
  bool here = false;  // on this machine: its word can be reached, and it was seen to run. Of others only
                      // their files speak: one that was killed there is taken to run
};

// Those of a session's folder that run; by rank, then by pid; those without a rank behind the others.
// not_found where there is no such folder; empty where nothing runs in it.
Result<std::vector<RecordingProcess>> recording_processes(const std::filesystem::path& folder);
// Likewise, and those of this machine that run and have stopped their newest file: they go on with another
// one in a moment, which takes their word along, or are not watched any more.
struct SessionProcesses {
  std::vector<RecordingProcess> recording;
  std::vector<RecordingProcess> between_files;
};
Result<SessionProcesses> session_processes(const std::filesystem::path& folder);
// not_found: there is none of that number, it is not watched, or its session was removed under it;
// permission_denied: it is another user's.
Result<RecordingProcess> recording_process(int pid);

// Of a process whose session was removed under it: what that means, and what to do.
std::string session_gone_text(int pid, const FoundSession& removed);

// Arms or disarms tracing: one word in the mapped header of its file, which its owner alone (and root) may
// write. permission_denied: another user's; not_found: it has ended, or goes on with another file;
// unsupported: it runs on another machine; corrupt: the file is no session's. It is disarmed also where that
// is not_found: children that have done nothing yet begin with the word that is there.
Result<void> set_trace(const RecordingProcess& process, bool on);

}  // namespace penstock
