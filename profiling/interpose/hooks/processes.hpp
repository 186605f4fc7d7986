#pragma once

namespace penstock::interpose {

// A fork's child: it writes nothing more to its parent's session, and begins one of its own when it does
// something.
void after_fork_in_child() noexcept;
// The same where libc's fork() has not run, and has renewed no locks. Such forks call before_fork() and
// after_fork_in_parent() themselves (loader_walk.hpp); libc's fork() has both as its handlers.
void after_raw_fork_in_child() noexcept;
// Before a process ends or becomes another program: what its streams and rings have moved without a call.
void settle() noexcept;
// execve() by the kernel, watched as the function is. Returns only where it failed, with errno set.
long execute(const char* path, char* const* arguments, char* const* environment) noexcept;

}  // namespace penstock::interpose
