#include "io_backends/core/limits.hpp"

#include <sys/resource.h>

#include <utility>

namespace penstock {

namespace {

// The current value; RLIM_INFINITY if it cannot be read.
rlim_t limit_of(int resource) {
  rlimit limit{};
  return ::getrlimit(__rlimit_resource_t(resource), &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

std::string limit_text(int resource) {
  const rlim_t limit = limit_of(resource);
  return limit == RLIM_INFINITY ? "" : " (now " + std::to_string(limit) + ")";
}

std::string byte_limit_text(int resource) {
  const rlim_t limit = limit_of(resource);
  if (limit == RLIM_INFINITY) return "";
  return limit % 1024 == 0 ? " (now " + std::to_string(limit / 1024) + " KiB)"
                           : " (now " + std::to_string(limit) + " bytes)";
}

std::string memory_limit_text() {
  std::string text;
  for (const auto& [resource, flag] : {std::pair{RLIMIT_AS, "-v"}, std::pair{RLIMIT_DATA, "-d"}})
    if (const std::string limit = byte_limit_text(resource); !limit.empty())
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
