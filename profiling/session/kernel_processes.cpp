#include "profiling/session/kernel_processes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

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
  bool has_lines = false;
  while (in >> name >> value) {
    has_lines = true;
    if (name == "rchar:") io.rchar = value;
    if (name == "wchar:") io.wchar = value;
    if (name == "syscr:") io.syscr = value;
    if (name == "syscw:") io.syscw = value;
    if (name == "read_bytes:") io.read_bytes = value;
    if (name == "write_bytes:") io.write_bytes = value;
  }
  return has_lines;
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

bool process_runs(uint32_t pid, uint64_t start) {
  const std::string stat = stat_of(pid);
  return start != 0 && start_ticks_in(stat) == start && stat[0] != 'Z' && stat[0] != 'X';
}

}  // namespace penstock
