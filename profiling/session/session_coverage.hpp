// Calculates coverage: which part of the I/O that the kernel counted was recorded by the profiler. It
// compares two numbers for each process. The first is the growth of the kernel's counters (/proc/PID/io)
// since the library was loaded, without those of children that the process waited for. The second is the
// number of bytes that the recorded calls moved.
//
// A process that was killed could not read its final counters. If its parent continued and waited for it, the
// parent's counters contain those of the child, and the sums of parent and child are compared. Otherwise the
// process is left out of the comparison and counted as unknown.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiling/session/session.hpp"

namespace penstock {

struct Coverage {
  uint64_t kernel_bytes = 0;    // bytes that the kernel counted for the processes in the comparison
  uint64_t recorded_bytes = 0;  // bytes of the recorded calls of these processes
  // recorded_bytes / kernel_bytes. 1 if both are 0; NaN if `kernel_bytes` is 0 and `recorded_bytes` is not.
  double fraction() const;
};

struct SessionCoverage {
  Coverage rchar;
  Coverage wchar;
  uint64_t ring_bytes = 0;  // bytes of io_uring and libaio
  uint64_t spliced_bytes = 0;
  uint64_t mapped_bytes = 0;
  size_t unknown_processes = 0;  // processes left out of the comparison, including cut_processes
  size_t cut_processes = 0;      // processes with a file from which bytes are missing
  size_t running_processes = 0;  // processes that run on this machine at present
  // Forked children that run on this machine and have made no call yet, so that they have no file. They are
  // no part of running_processes.
  size_t waiting_children = 0;
  size_t threads = 0;
  // failed calls that were not counted for a file, because the thread had not used the file's name before
  uint64_t missed_calls = 0;
  double missed_ns = 0;
};

// True if the process that writes this file is running, and the file was made on the machine `this_host`
// (this_host() in kernel_processes.hpp).
bool writer_runs(const ProcessFile& process_file, std::string_view this_host);

// Returns how many forked children run on this machine and have made no call yet. Such a child still maps the
// session file of its parent. Children whose mappings this user may not read are not counted.
size_t waiting_children(const Session& session);

// Calculates the coverage. For a process that still runs on this machine, it reads the kernel's current
// counters.
SessionCoverage coverage_of(const Session& session);

}  // namespace penstock
