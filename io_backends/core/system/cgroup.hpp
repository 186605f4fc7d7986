// Reads the limits of the control group (cgroup) in which this process runs.
#pragma once

#include <filesystem>
#include <optional>

#include "io_backends/core/json.hpp"

namespace penstock {

// Returns the cgroup limits of this process. A limit that does not exist is absent. `memory_bytes` and `cpus`
// are the tightest limits of the process's group and of all its parent groups, with cgroup version 1 and 2.
// `io` is that of the nearest of these groups that has one. `root` replaces "/" in tests. Keys: version and
// path (version 2 only), memory_bytes, cpus (quota / period), io (the lines of io.max or blkio.throttle),
// memory_free_bytes (the least that a group with memory_bytes may still use), throttled_s (how long the quota
// has kept processes of the group from running so far).
Json cgroup_limits(const std::filesystem::path& root = "/");

// How long the processor quota of the group has kept its processes from running so far, in seconds, added up
// over the processors. Absent if the kernel does not tell it; then there may be a quota all the same.
std::optional<double> throttled_seconds();

// How many threads that compute can run at once: the processors that this process may use, but not more than
// the quota of its cgroup, rounded up. At least 1.
unsigned usable_cpus();

// An estimate of how many bytes of memory this process can use now, at least 1: the smallest of MemAvailable
// and, for each cgroup with a memory limit, what its processes do not use of the limit. Page cache counts as
// available memory, files in tmpfs do not. 0 if nothing of that is known. `root` is where /proc and /sys are;
// tests give another folder.
uint64_t available_memory(const std::filesystem::path& root = "/");

}  // namespace penstock
