#include "io_backends/core/system/placement.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "io_backends/core/units.hpp"

namespace penstock {

Result<void> run_on_cpus(std::span<const uint64_t> cpus) {
  cpu_set_t cpu_mask;
  CPU_ZERO(&cpu_mask);
  const std::vector<uint64_t> allowed = allowed_cpus();
  for (const uint64_t cpu : cpus) {
    if (std::find(allowed.begin(), allowed.end(), cpu) == allowed.end())
      return make_error(Errc::invalid_argument, "CPU {} does not exist or is not allowed; allowed: {}", cpu,
                        cpu_ranges(allowed));
    CPU_SET(cpu, &cpu_mask);
  }
  if (::sched_setaffinity(0, sizeof cpu_mask, &cpu_mask) != 0)
    return errno_error(errno, "cannot pin to CPUs", cpu_ranges(cpus));
  return success();
}

Result<void> run_on_numa_node(uint64_t node) {
  const std::string path = fmt::format("/sys/devices/system/node/node{}/cpulist", node);
  std::ifstream file(path);
  std::string text;
  if (!(file >> text)) {
    std::error_code failed;
    const bool has_nodes = std::filesystem::exists("/sys/devices/system/node/node0", failed);
    if (has_nodes) return make_error(Errc::invalid_argument, "NUMA node {} does not exist", node);
    return make_error(
        Errc::unsupported,
        "cannot read '{}': this kernel or container does not show NUMA nodes; use --cpus instead of --numa",
        path);
  }
  std::string dotted_ranges;  // the kernel's "0-3,8" is "0..3,8" for parse_list()
  for (const char c : text) dotted_ranges += c == '-' ? ".." : std::string(1, c);
  PENSTOCK_ASSIGN(const std::vector<uint64_t> cpus, parse_list(dotted_ranges));
  return run_on_cpus(cpus);
}

std::vector<uint64_t> allowed_cpus() {
  cpu_set_t cpu_mask;
  CPU_ZERO(&cpu_mask);
  std::vector<uint64_t> out;
  if (::sched_getaffinity(0, sizeof cpu_mask, &cpu_mask) != 0) return out;
  for (uint64_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &cpu_mask)) out.push_back(cpu);
  return out;
}

std::string cpu_ranges(std::span<const uint64_t> cpus) {
  std::string out;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!out.empty()) out += ',';
    out += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return out;
}

}  // namespace penstock
