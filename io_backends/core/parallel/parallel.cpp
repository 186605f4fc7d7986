#include "io_backends/core/parallel/parallel.hpp"

#include <algorithm>

#include "io_backends/core/system/cgroup.hpp"

namespace penstock {

unsigned worker_threads(uint64_t wanted) {
  constexpr uint64_t kMaxThreads = 1024;
  if (wanted == 0) wanted = std::max(4U, usable_cpus());
  return unsigned(std::min(wanted, kMaxThreads));
}

unsigned compute_threads(unsigned wanted) {
  return wanted != 0 ? wanted : usable_cpus();
}

}  // namespace penstock
