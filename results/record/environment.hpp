// Describes the machine on which a measurement ran, for the record. `compare` needs some of these facts to be
// equal, and only reports differences of the others (results/compare/comparable.hpp).
#pragma once

#include <cstdint>

#include "io_backends/core/json.hpp"

namespace penstock {

struct CacheState;
struct Tier;

// The facts about this machine as a JSON object with: host, kernel, machine, os, cpu, cpus (allowed, "0-3"),
// cpu_count, numa (allowed memory nodes), governor, memory_bytes, cgroup (limits), build (compiler, type,
// flags, sanitizer), versions, clock_read_ns. A fact that the machine does not report is "" or absent. Takes
// a few milliseconds.
Json inspect_environment();

// How long one call of steady_clock::now() takes, in nanoseconds: the median of several.
double clock_read_ns();

// This machine's memory in bytes, 0 if unknown.
uint64_t memory_bytes();

// The current facts of a tier: how it was opened, its file system and ceilings, and the times of its calls if
// they are measured.
Json tier_json(const Tier& tier);
Json cache_json(const CacheState& cache);

}  // namespace penstock
