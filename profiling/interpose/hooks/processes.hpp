// What the library does when the process forks, ends or executes another program.
//
// Threads: the thread that makes the call, perhaps in a handler. After a fork, the child's only thread.
// Locks: none is held on entry. In a fork's child, locks are reset and not waited for, because their owners
// may not exist there.
// Memory: nothing is allocated on the program's heap.
#pragma once

namespace penstock::interpose {

// Makes a fork's child leave its parent's session: the child writes nothing more to it. A session of its own
// begins with its first counted call. Called in the child, which has one thread.
void after_fork_in_child() noexcept;
// Does what after_fork_in_child() does, in a child of a raw fork: one that was not made by libc's fork().
// libc has not reset its own locks in this child, so its functions that take locks, such as malloc(), may
// wait for ever. The code around a raw fork also calls before_fork() and after_fork_in_parent()
// (loader_walk.hpp) itself. For libc's fork(), pthread_atfork() calls all three.
void after_raw_fork_in_child() noexcept;
// Counts the bytes that streams, asynchronous I/O and rings have moved without a wrapped call. Called before
// the process ends or executes another program.
void count_unseen_transfers() noexcept;
// Makes execve() by a direct system call, and records it like the wrapped function. Returns only if it
// failed, with errno set.
long execute(const char* path, char* const* arguments, char* const* environment) noexcept;

}  // namespace penstock::interpose
