// How much of what the kernel counted was seen: the kernel's counters of a process (/proc/PID/io) since the
// library was loaded in it, less those of the children that it has reaped, against what its calls moved.
//
// A process that was killed could not ask the kernel for its last word. Where its parent, which lived on, has
// the child's bytes in its own counters, the two are compared together; where not, both stay out of the
// comparison and are counted as unknown.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiling/session/session.hpp"

namespace penstock {

struct Coverage {
  std::uint64_t kernel = 0;  // of those processes that are known
  std::uint64_t seen = 0;    // likewise
  // seen / kernel; 1 where neither has anything; not a number where nothing is known.
  double fraction() const;
};

struct SessionCoverage {
  Coverage rchar;
  Coverage wchar;
  std::uint64_t ring_bytes = 0;  // io_uring and libaio
  std::uint64_t spliced_bytes = 0;
  std::uint64_t mapped_bytes = 0;
  std::size_t unknown_processes = 0;  // `cut_processes` included
  std::size_t cut_processes = 0;      // whose files were cut short
  std::size_t running_processes = 0;  // on this machine, now
  std::size_t threads = 0;
  std::uint64_t missed = 0;  // calls that failed on names of which their thread knew no file
  double missed_ns = 0;
};

// Whether the process that writes this file runs now, on the machine of that name (this_host(),
// kernel_processes.hpp).
bool lives(const SessionImage& image, std::string_view this_host);

// Of a process that still runs on this machine, the kernel is asked now.
SessionCoverage coverage_of(const Session& session);

}  // namespace penstock
