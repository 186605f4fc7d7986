// Keeps walks and forks from happening at the same time. A walk is a call of dl_iterate_phdr(): it visits all
// loaded objects, that is, the program and its shared libraries. During a walk the thread holds a lock of the
// loader, here called the loader's lock. glibc does not renew this lock in a fork's child. If another thread
// held it at the fork, the child would wait for ever at its next walk, and when dlopen() loads an object. So
//
// - no fork happens during a walk of this library, and no walk begins during a fork. A fork waits for walks,
//   and a walk waits for forks, but at most kMostWaitNs (loader_walk.cpp). So this waiting can never become a
//   deadlock, whatever other locks are held;
// - a child inspects the lock without taking it. If the lock was held at the fork, perhaps by a thread of the
//   program, the child never walks. If this library could not find the lock, its state is not known: then
//   may_walk_objects() and loader_is_stuck() tell callers not to walk.
//
// New threads, and the children of vfork() and posix_spawn(), share this memory and this lock. Making them
// does not count as a fork here. But a child of vfork() has another process id. If it walks before it calls
// exec, check_process() takes it for a child of a fork and resets its parent's counters.
//
// Threads: any thread, and any handler.
// Locks: none of this library. walk_objects() holds the loader's lock while it visits.
// Memory: nothing is allocated, with one exception: the first walk calls dlsym(), which may allocate. That is
// usually in this library's constructor.
#pragma once

#include <link.h>

#include <cstddef>

namespace penstock::interpose {

using Visit = int (*)(dl_phdr_info* about, size_t bytes, void* with);

// Calls `visit` for each loaded object, as dl_iterate_phdr() does. Returns what the last `visit` returned. In
// a fork's child in which the loader's lock is held for ever, it visits nothing and returns 0. `visit` runs
// under the loader's lock: it must not wait, call the loader or allocate.
int walk_objects(Visit visit, void* with) noexcept;
// True if a walk would not have to wait: no fork is running, and the loader's lock is known to be usable.
// Wrapped calls check this first. If it is false, they do without the walk.
bool may_walk_objects() noexcept;
// True in a fork's child in which the loader's lock is held for ever, or in which its state is not known.
// Callers must not walk there. If the lock is held, nothing can be loaded or unloaded in the child. If its
// state is only unknown, threads of the child may load objects.
bool loader_is_stuck() noexcept;

// Waits until no walk is running, at most 5 s, and makes new walks wait for the end of the fork. Called
// before each fork by the thread that forks.
void before_fork() noexcept;
// Lets walks begin again. Called after the fork in the parent, by the thread that forked.
void after_fork_in_parent() noexcept;
// Resets the counts of walks and forks in the child, and inspects the loader's lock. After a wrapped fork the
// child's only thread calls it before it may walk. In a child of a fork without a wrapper, the first walk
// calls it, in any thread.
void forget_parents_walks() noexcept;

// Notes that this process is the child of a raw fork: one that was not made by libc's fork(), but by _Fork(),
// clone() or a system call. Only libc's fork() renews the lock that dlsym() and dlopen() use, so in such a
// child that lock may be held for ever.
void note_raw_fork() noexcept;
// True after note_raw_fork(). Any thread and any handler; takes no lock.
bool is_raw_child() noexcept;

}  // namespace penstock::interpose
