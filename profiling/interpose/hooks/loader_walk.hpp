// Keeps walks over the loaded objects and forks from happening at the same time. dl_iterate_phdr() holds a
// lock of the loader that glibc does not renew in a fork's child. If another thread held it at the fork, the
// child would wait for ever at its next walk and at its next dlopen(). So
//
// - no fork happens while this library walks, and no walk begins while a fork is running. Each waits for the
//   other, but at most kMostWaitNs (loader_walk.cpp). So this waiting can never become a deadlock, whatever
//   other locks are held;
// - a child inspects the lock without taking it, and does not walk if a thread held it at the fork. The
//   program's own threads may have held it. If the lock could not be found, its state is not known:
//   may_walk_objects() and loader_is_stuck() then tell callers not to walk.
//
// New threads and the children of vfork() and posix_spawn() share this memory and this lock. They do not
// count as forks here.
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

// Calls `visit` for each loaded object, as dl_iterate_phdr() does. Returns 0 and visits nothing if the
// loader's lock is known to be held by a thread that does not exist. `visit` runs under the loader's lock: it
// must not wait, call the loader or allocate.
int walk_objects(Visit visit, void* with) noexcept;
// True if no fork is running and the lock can be taken. Wrapped calls check this first: if it is false, they
// do not walk, instead of waiting.
bool may_walk_objects() noexcept;
// True in a child in which the loader's lock is held for ever, or in which its state is not known. Callers
// must not walk there. If the lock is held, nothing can be loaded or unloaded in the child. If its state is
// only unknown, threads of the child may load objects.
bool loader_is_stuck() noexcept;

// Called before each fork by the thread that forks. Waits until no walk is running, at most 5 s.
void before_fork() noexcept;
// Called after the fork in the parent, by the same thread.
void after_fork_in_parent() noexcept;
// Called after the fork in the child, by its only thread, before it may walk.
void forget_parents_walks() noexcept;

// note_raw_fork() is called in a child that was not forked by libc's fork(). Only fork() renews the lock that
// dlsym() and dlopen() use, so in such a child that lock may be held for ever.
void note_raw_fork() noexcept;
// True after note_raw_fork(). Any thread and any handler; takes no lock.
bool is_raw_child() noexcept;

}  // namespace penstock::interpose
