// Wrappers of calls after which a process may not be able to write its session: it gives up rights, changes
// its root or its namespaces, or restricts its system calls.
//
// Threads: any thread of the program.
// Locks: none of this library is held on entry. before_rights_change() takes file_lock briefly, and the locks
// of begin_log() in a fork's child.
// Memory: nothing is allocated on the program's heap.
// Signals: a handler whose own thread holds file_lock only makes the call.
// Forks: a child that has counted nothing begins its session here, because later it could not. In a vfork's
// child nothing is done, because its memory is the parent's.
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "profiling/interpose/hooks/processes.hpp"
#include "profiling/interpose/hooks/wrap.hpp"
#include "profiling/interpose/writer/session_lifetime.hpp"
#include "profiling/interpose/writer/system.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace penstock::interpose {

void before_rights_change(bool seals) noexcept {
  if (log_suspended()) {
    return;
  }
  const int saved_errno = errno;
  if (thread_log() != nullptr) {
    keep_access(seals);
  }
  errno = saved_errno;
}

void note_restricted_calls(bool is_strict, uint64_t last_ticks) noexcept {
  if (!log_suspended()) {
    if (is_strict) {
      session.stopped_ticks = last_ticks;
      session.uses_tsc = false;
    }
    is_sealed.store(true, std::memory_order_relaxed);
  }
}

}  // namespace penstock::interpose

#define PENSTOCK_WRAP_RIGHTS(name, parameters, ...) \
  PENSTOCK_WRAP(int, name, parameters) {            \
    before_rights_change(false);                    \
    return real_##name(__VA_ARGS__);                \
  }
PENSTOCK_WRAP_RIGHTS(setuid, (uid_t user), user)
PENSTOCK_WRAP_RIGHTS(setgid, (gid_t group), group)
PENSTOCK_WRAP_RIGHTS(seteuid, (uid_t user), user)
PENSTOCK_WRAP_RIGHTS(setegid, (gid_t group), group)
PENSTOCK_WRAP_RIGHTS(setreuid, (uid_t real, uid_t effective), real, effective)
PENSTOCK_WRAP_RIGHTS(setregid, (gid_t real, gid_t effective), real, effective)
PENSTOCK_WRAP_RIGHTS(setresuid, (uid_t real, uid_t effective, uid_t saved), real, effective, saved)
PENSTOCK_WRAP_RIGHTS(setresgid, (gid_t real, gid_t effective, gid_t saved), real, effective, saved)
PENSTOCK_WRAP_RIGHTS(setfsuid, (uid_t user), user)
PENSTOCK_WRAP_RIGHTS(setfsgid, (gid_t group), group)
PENSTOCK_WRAP_RIGHTS(setgroups, (size_t count, const gid_t* groups), count, groups)
PENSTOCK_WRAP_RIGHTS(initgroups, (const char* user, gid_t group), user, group)
PENSTOCK_WRAP_RIGHTS(capset, (void* header, const void* data), header, data)
PENSTOCK_WRAP_RIGHTS(chroot, (const char* path), path)
PENSTOCK_WRAP_RIGHTS(unshare, (int flags), flags)
PENSTOCK_WRAP_RIGHTS(setns, (int fd, int kind), fd, kind)

// NOLINTNEXTLINE(cert-dcl50-cpp): prctl() is variadic
PENSTOCK_WRAP(int, prctl, (int option, ...)) {
  va_list values;
  va_start(values, option);
  const unsigned long a = va_arg(values, unsigned long);
  const unsigned long b = va_arg(values, unsigned long);
  const unsigned long c = va_arg(values, unsigned long);
  const unsigned long d = va_arg(values, unsigned long);
  va_end(values);
  if (option == PR_SET_SECCOMP) {
    before_rights_change(true);
  }
  const uint64_t begin = option == PR_SET_SECCOMP ? ticks() : 0;
  const int result = real_prctl(option, a, b, c, d);
  if (option == PR_SET_SECCOMP && result == 0) {
    note_restricted_calls(a == SECCOMP_MODE_STRICT, begin);
  }
  return result;
}
