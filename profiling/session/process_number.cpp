#include "profiling/session/process_number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace penstock {

bool is_process_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<int> process_number(std::string_view word) {
  int pid = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), pid);
  if (!is_process_number(word) || parsed.ec != std::errc() || pid == 0)
    return make_error(Errc::invalid_argument, fmt::format("'{}' is no process's number", word));
  return pid;
}

}  // namespace penstock
