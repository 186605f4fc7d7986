// Which processors this process may run on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// Pins the calling thread, and so every thread made from now on. invalid_argument for a processor that is not
// there or not allowed, naming those that are.
Result<void> run_on_cpus(std::span<const std::uint64_t> cpus);
Result<void> run_on_numa_node(std::uint64_t node);

// The processors that this process may use now, ascending; and the same as "0-3,8".
std::vector<std::uint64_t> allowed_cpus();
std::string cpu_ranges(std::span<const std::uint64_t> cpus);

}  // namespace penstock
