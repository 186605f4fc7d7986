#include "profiling/session/process_number.hpp"

#include <algorithm>

#include "io_backends/core/text.hpp"

namespace penstock {

bool is_process_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<int> process_number(std::string_view word) {
  const auto pid = parse_digits<int>(word);
  if (!is_process_number(word) || !pid || *pid == 0)
    return make_error(Errc::invalid_argument, "'{}' is not a process ID", word);
  return *pid;
}

}  // namespace penstock
