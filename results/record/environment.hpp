// What a measurement ran on: the part of a record that says whether two records may be compared.
#pragma once

#include <cstdint>
#include <filesystem>

#include "io_backends/core/json_text.hpp"

namespace penstock {

struct CacheState;
struct Tier;

// host, kernel, cpu, cpus (allowed, "0-3"), cpu_count, numa (allowed memory nodes), governor, memory_bytes,
// cgroup (limits), build (compiler, type, flags, sanitizer), versions, clock_read_ns. What the machine does
// not tell is "" or absent. Takes a few milliseconds.
Json inspect_environment();

// The cgroup limits that hold for this process: the tightest on the way to the root, version 1 and 2; {} when
// there are none. Keys: version, path, memory_bytes, cpus (quota / period), io (the io.max or blkio.throttle
// lines). `root` replaces "/" in tests.
Json cgroup_limits(const std::filesystem::path& root);

// The median cost of one steady_clock read.
double clock_read_ns();

// This machine's memory in bytes, 0 if unknown.
std::uint64_t memory_bytes();

// What may be taken of it now, as its MemAvailable and the cgroup's limit say, without the system having to
// end a process for it: page cache gives way, what is in tmpfs does not. 0: unknown.
std::uint64_t memory_left();

// The tier as it is now: what it was opened from, its file system and ceilings, and the times of its calls
// where they are taken.
Json tier_json(const Tier& tier);
Json cache_json(const CacheState& cache);

}  // namespace penstock
