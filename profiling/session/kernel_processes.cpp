#include "profiling/session/kernel_processes.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <utility>

namespace penstock {
namespace {

// Returns the fields of /proc/PID/stat from field 3 on. Field 2 is the program's name in parentheses. It may
// contain any character, so it ends at the last ')'.
std::string stat_of(uint32_t pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(in, text);
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos || name_end + 2 > text.size() ? "" : text.substr(name_end + 2);
}

uint64_t start_ticks_in(const std::string& stat) {
  size_t at = 0;
  for (int field = 3; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  return stat.empty() || at == std::string::npos ? 0 : std::strtoull(stat.c_str() + at, nullptr, 10);
}

}  // namespace

bool read_kernel_io(uint32_t pid, penstock_kernel_io& io) {
  std::ifstream in(fmt::format("/proc/{}/io", pid));
  std::string name;
  uint64_t value = 0;
  unsigned found = 0;
  const std::array members{
      std::pair{"rchar:", &io.rchar},           std::pair{"wchar:", &io.wchar},
      std::pair{"syscr:", &io.syscr},           std::pair{"syscw:", &io.syscw},
      std::pair{"read_bytes:", &io.read_bytes}, std::pair{"write_bytes:", &io.write_bytes}};
  while (in >> name >> value)
    for (size_t i = 0; i < members.size(); ++i)
      if (name == members[i].first) {
        *members[i].second = value;
        found |= 1U << i;
      }
  return found == (1U << members.size()) - 1;
}

std::string this_host() {
  // The name is cut to the size of the header's field, as in the profiler's library, because callers compare
  // the two names.
  std::array<char, sizeof(penstock_session_header::host)> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

uint64_t process_start(uint32_t pid) {
  return start_ticks_in(stat_of(pid));
}

bool maps_file(uint32_t pid, const std::string& name) {
  std::ifstream mappings(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(mappings, line);)
    if (line.ends_with("/" + name)) return true;
  return false;
}

uint32_t own_pid_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? uint32_t(status.st_ino) : 0;
}

bool process_runs(uint32_t pid, uint64_t start) {
  const std::string stat = stat_of(pid);
  return start != 0 && start_ticks_in(stat) == start && stat[0] != 'Z' && stat[0] != 'X';
}

}  // namespace penstock
