// Chooses the processors on which this process runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// run_on_cpus() restricts the calling thread, and every thread that it starts later, to the processors
// `cpus`. run_on_numa_node() does the same for the processors of a NUMA node. They fail with invalid_argument
// if the node or a processor does not exist, or if a processor is not allowed.
Result<void> run_on_cpus(std::span<const uint64_t> cpus);
Result<void> run_on_numa_node(uint64_t node);

// The processors that this process may use, in ascending order.
std::vector<uint64_t> allowed_cpus();
// A list of processors as text: "0-3,8".
std::string cpu_ranges(std::span<const uint64_t> cpus);

}  // namespace penstock
