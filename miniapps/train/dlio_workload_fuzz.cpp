// Fuzz target: the input is a workload file. What follows a zero byte is an override. A workload that is
// accepted must have possible numbers.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "miniapps/train/dlio_workload.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int fd = ::memfd_create("workload", MFD_CLOEXEC);
  if (fd < 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t file_bytes = std::min(input.find('\0'), size);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, file_bytes, 0) != ssize_t(file_bytes)) return 0;
  std::vector<std::string> overrides;
  if (file_bytes < size) overrides.emplace_back(input.substr(file_bytes + 1));
  const auto workload = penstock::read_dlio_workload("/proc/self/fd/" + std::to_string(fd), overrides);
  if (!workload.ok()) {
    if (workload.error().what.empty()) std::abort();
    return 0;
  }
  const bool possible = workload->batch > 0 && workload->samples_per_file > 0 &&
                        workload->sample_bytes >= 0 && std::isfinite(workload->computation.mean_s) &&
                        workload->computation.mean_s >= 0 &&
                        std::isfinite(workload->computation.deviation_s) && workload->au >= 0;
  if (!possible) std::abort();
  static_cast<void>(penstock::files_read_by_dlio(*workload, 8));
  return 0;
}
