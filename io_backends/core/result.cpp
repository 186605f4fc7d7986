#include "io_backends/core/result.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

#include "io_backends/core/limits.hpp"

namespace penstock {
namespace {

Errc errc_of(int sys_errno) {
  switch (sys_errno) {
    case ENOENT:
    case ENOTDIR:
      return Errc::not_found;
    case EEXIST:
    case ENOTEMPTY:
      return Errc::already_exists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::permission_denied;
    case ENOSPC:
    case EDQUOT:
      return Errc::no_space;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EFBIG:
      return Errc::exhausted;
    case EBUSY:
    case EAGAIN:
    case ETXTBSY:
      return Errc::busy;
    case ETIMEDOUT:
      return Errc::timed_out;
    case EINTR:
      return Errc::interrupted;
    case EINVAL:
    case ENAMETOOLONG:
    case EISDIR:
    case ELOOP:
      return Errc::invalid_argument;
    case ENOSYS:
    case EOPNOTSUPP:
    case EXDEV:
      return Errc::unsupported;
    default:
      return Errc::io;
  }
}

}  // namespace

std::string_view errc_name(Errc code) {
  constexpr std::string_view kNames[] = {
      "invalid_argument", "not_found", "already_exists", "permission_denied",
      "no_space",         "truncated", "corrupt",        "io",
      "exhausted",        "busy",      "timed_out",      "interrupted",
      "unsupported",      "internal"};
  return kNames[size_t(code)];
}

int exit_code(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
    case Errc::internal:
      return 2;
    case Errc::unsupported:
      return 77;
    default:
      return 1;
  }
}

std::string Error::message() const {
  if (sys_errno == 0) return what;
  char buffer[128];
  // The GNU strerror_r returns the text, which may or may not be in the buffer.
  std::string text = what + ": " + ::strerror_r(sys_errno, buffer, sizeof buffer);
  if (sys_errno == EMFILE)
    text += " in this process: raise ulimit -n" + limit_text(RLIMIT_NOFILE) + ", or use fewer threads";
  if (sys_errno == EFBIG) {
    const std::string limit = byte_limit_text(RLIMIT_FSIZE);
    text += limit.empty()
                ? " for this file system (ulimit -f is unlimited): use a file system that allows larger files"
                : ": raise ulimit -f" + limit + ", or use a file system that allows larger files";
  }
  return text;
}

Error errno_error(int sys_errno, std::string_view operation, std::string_view object) {
  std::string what(operation);
  if (!object.empty()) what.append(" '").append(object).append("'");
  return Error{errc_of(sys_errno), sys_errno, std::move(what)};
}

Error make_error(Errc code, std::string what) {
  return Error{code, 0, std::move(what)};
}

Error error_of(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr)
    return make_error(Errc::exhausted, "out of memory" + memory_limit_text());
  if (dynamic_cast<const std::length_error*>(&thrown) != nullptr)
    return make_error(Errc::exhausted, std::string("out of memory: ") + thrown.what() + memory_limit_text());
  const auto* const system_error = dynamic_cast<const std::system_error*>(&thrown);
  if (system_error != nullptr && (system_error->code().category() == std::generic_category() ||
                                  system_error->code().category() == std::system_category())) {
    const int sys_errno = system_error->code().value();
    // std::thread throws EAGAIN if the system refuses to start a thread
    return sys_errno == EAGAIN ? no_more_threads(*system_error, 1)
                               : make_error(errc_of(sys_errno), thrown.what());
  }
  return make_error(Errc::internal, std::string("internal error: ") + thrown.what());
}

}  // namespace penstock
