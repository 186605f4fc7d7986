// What the library does when the process forks, ends or executes another program.
//
// Threads: these functions run in the thread that makes the call, perhaps in a handler. After a fork, this
// thread is the child's only one.
// Locks: none is held on entry. A fork's child resets locks and does not wait for them, because their owners
// may not exist there.
// Memory: nothing is allocated on the program's heap.
#pragma once

#include <cstdint>

namespace penstock::interpose {

// Makes every later fork() call before_fork(), after_fork_in_parent() (loader_walk.hpp) and
// after_fork_in_child(). Called before recording begins for the first time; later calls do nothing. It is not
// called while `penstock profile attach` loads this library: forks wait for that load, and pthread_atfork()
// waits for forks. It may call malloc.
void watch_forks() noexcept;
// Makes a fork's child leave its parent's session, so that the child adds nothing more to that session. The
// child begins a session of its own at its first counted call. Called in the child, which has only one
// thread. Code that forks by _Fork(), clone() or a system call also calls before_fork() and
// after_fork_in_parent() (loader_walk.hpp). For libc's fork(), pthread_atfork() makes all three calls.
void after_fork_in_child() noexcept;
// Counts bytes that are not counted yet: those that macros of stdio moved in streams, and those of
// asynchronous operations (AIO, io_uring) that have ended but whose results the program has not asked for.
// Called before the process ends or executes another program.
void count_unseen_transfers() noexcept;
// Called before a call by which the program gives up rights, or changes its root or its namespaces. A fork's
// child begins its session, and what the session needs stays open. `seals`: the call restricts the system
// calls of the process; if it succeeds, note_restricted_calls() is called after it. errno does not change.
void before_rights_change(bool seals) noexcept;
// From now on this library makes no system call: it might be one that ends the process. If `is_strict` is
// set, it reads no clock either (seccomp's strict mode). `last_ticks` was read before the call.
void note_restricted_calls(bool is_strict, uint64_t last_ticks) noexcept;
// Called before libc begins a shell itself. Names the shell in the session if it will not load this library.
void note_shell() noexcept;
// Makes the system call `number`, SYS_execve or SYS_execveat, and records it as the wrappers of execve() and
// execveat() do. For SYS_execve `at` is AT_FDCWD. Returns only if the call has failed, with errno set.
long execute(long number, int at, const char* path, char* const* arguments, char* const* environment,
             int flags) noexcept;

}  // namespace penstock::interpose
