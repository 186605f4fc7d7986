// What the library does when the process forks, ends or executes another program.
//
// Threads: these functions run in the thread that makes the call, perhaps in a handler. After a fork, this
// thread is the child's only one.
// Locks: none is held on entry. A fork's child resets locks and does not wait for them, because their owners
// may not exist there.
// Memory: nothing is allocated on the program's heap.
#pragma once

namespace penstock::interpose {

// Makes a fork's child leave its parent's session, so that the child adds nothing more to that session. The
// child begins a session of its own at its first counted call. Called in the child, which has only one
// thread.
void after_fork_in_child() noexcept;
// Does what after_fork_in_child() does, in a child of a raw fork: one that was not made by libc's fork(). It
// also notes that libc has not reset its own locks in this child: libc's functions that take locks, such as
// malloc(), may wait for ever there.
// Code that makes a raw fork must also call before_fork() and after_fork_in_parent() (loader_walk.hpp). For
// libc's fork(), pthread_atfork() makes all three calls.
void after_raw_fork_in_child() noexcept;
// Counts bytes that are not counted yet: those that macros of stdio moved in streams, and those of
// asynchronous operations (AIO, io_uring) that have ended but whose results the program has not asked for.
// Called before the process ends or executes another program.
void count_unseen_transfers() noexcept;
// Makes execve() by a direct system call, and records it as the wrapper of execve() does. Returns only if the
// call has failed, with errno set.
long execute(const char* path, char* const* arguments, char* const* environment) noexcept;

}  // namespace penstock::interpose
