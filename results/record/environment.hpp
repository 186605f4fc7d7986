// Describes the machine that a measurement ran on. This part of a record decides whether two records may be
// compared.
#pragma once

#include <cstdint>
#include <filesystem>

#include "io_backends/core/json_text.hpp"

namespace penstock {

struct CacheState;
struct Tier;

// An object with: host, kernel, machine, os, cpu, cpus (allowed, "0-3"), cpu_count, numa (allowed memory
// nodes), governor, memory_bytes, cgroup (limits), build (compiler, type, flags, sanitizer), versions,
// clock_read_ns. A fact that the machine does not report is "" or absent. Takes a few milliseconds.
Json inspect_environment();

// The cgroup limits of this process; {} if there are none. With version 2 they are the tightest limits of its
// group and all parents, with version 1 the limits of its group. Keys: version and path (version 2 only),
// memory_bytes, cpus (quota / period), io (the lines of io.max or blkio.throttle). `root` replaces "/" in
// tests.
Json cgroup_limits(const std::filesystem::path& root);

// The median cost of one steady_clock read.
double clock_read_ns();

// This machine's memory in bytes, 0 if unknown.
uint64_t memory_bytes();

// The memory in bytes that this process can use now, so that the system does not have to end a process: the
// smaller of MemAvailable and the cgroup's limit. Page cache counts as available, files in tmpfs do not. 0 if
// unknown.
uint64_t available_memory();

// The current facts of a tier: how it was opened, its file system and ceilings, and the times of its calls if
// they are measured.
Json tier_json(const Tier& tier);
Json cache_json(const CacheState& cache);

}  // namespace penstock
