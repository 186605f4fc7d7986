// Finds processes that are recording, and switches their traces. It only reads and writes the files of their
// sessions; nothing is injected into the processes. The trace switch of a process is bit 0 of `control` in
// its file's header. The process has that page mapped, and reads the bit at each of its I/O calls.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

struct SessionFile;  // declared in profiling/attach/target.hpp

// A process that is recording, described by its newest file in the session's folder.
struct RecordingProcess {
  uint32_t pid = 0;
  uint64_t start_ticks = 0;  // start time of the process, in the kernel's ticks
  std::string host;
  int rank = -1;                   // given by a launcher; -1: none
  std::string file;                // absolute, if the folder's path is absolute
  std::string command;             // its arguments, separated by blanks
  uint32_t start_reason = 0;       // enum penstock_start_reason
  int64_t file_begin_ns = 0;       // when this file began, since 1970
  bool trace = false;              // the process records every call
  uint64_t trace_limit_bytes = 0;  // limit for recorded calls, in bytes; 0: none
  // For a process that was forked: the pids from which it inherited its trace switch. First comes its parent,
  // then the parent's parent, and so on.
  std::vector<uint32_t> inherited_from;
  // True if the process runs on this machine: only then can its trace be switched. If false, only its file is
  // known, so a process that was killed on another machine still looks like a running one.
  bool on_this_machine = false;
};

// Returns the processes that record into this folder, or an empty list if there are none. They are sorted by
// rank, host and pid; processes without a rank come last. Error: not_found if the folder does not exist.
Result<std::vector<RecordingProcess>> recording_processes(const std::filesystem::path& folder);
// The processes of a session's folder.
// `recording`: the result of recording_processes().
// `between_files`: processes of this machine that still run, but have ended their newest file. Such a process
// either soon begins another file, which inherits the trace switch, or is not watched any more.
struct SessionProcesses {
  std::vector<RecordingProcess> recording;
  std::vector<RecordingProcess> between_files;
};
Result<SessionProcesses> session_processes(const std::filesystem::path& folder);
// Finds the process `pid` of this machine and its session file. Errors: not_found if no such process exists,
// if it is not watched, or if its session was removed; permission_denied if it belongs to another user.
Result<RecordingProcess> recording_process(int pid);

// Text for a process that still records, although its session was removed: says that the records are lost,
// and how to end this.
std::string session_gone_text(int pid, const SessionFile& removed);

// Switches the trace of a process on or off, by one write into the header of its file.
// Errors: permission_denied if the file belongs to another user (only its owner and root may write it);
// not_found if the process has ended or uses another file; unsupported if it runs on another machine; corrupt
// if the file is no session file. Switching off writes the header even if the result is not_found: children
// that have not recorded anything yet will copy the switch from this header.
Result<void> set_trace(const RecordingProcess& process, bool on);

}  // namespace penstock
