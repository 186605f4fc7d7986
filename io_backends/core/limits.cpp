#include "io_backends/core/limits.hpp"

#include <sys/resource.h>

#include <utility>

namespace penstock {

std::string limit_text(int resource, std::string_view unit) {
  rlimit limit{};
  if (::getrlimit(__rlimit_resource_t(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  std::string text = " (now " + std::to_string(limit.rlim_cur);
  if (!unit.empty()) text.append(" ").append(unit);
  return text + ")";
}

std::string memory_limit_text() {
  std::string text;
  for (const auto& [resource, flag] : {std::pair{RLIMIT_AS, "-v"}, std::pair{RLIMIT_DATA, "-d"}})
    if (const std::string limit = limit_text(resource, "bytes"); !limit.empty())
      text.append("; raise ulimit ").append(flag).append(limit);
  return text;
}

Error no_more_threads(const std::system_error& error, size_t wanted, std::string_view fewer) {
  std::string what =
      wanted <= 1 ? "cannot start a thread" : "cannot start " + std::to_string(wanted) + " threads";
  what += " (raise ulimit -u" + limit_text(RLIMIT_NPROC) + " or the pids.max of the control group";
  if (wanted > 1 && !fewer.empty()) what.append(", or choose ").append(fewer);
  return Error{Errc::exhausted, error.code().value(), what + ")"};
}

}  // namespace penstock
