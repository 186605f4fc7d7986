// Keeps walks over the loaded objects and forks apart. dl_iterate_phdr() holds a lock of the loader that
// glibc does not renew in a fork's child. If another thread held it at the fork, the child would wait for
// ever at its next walk and at its next dlopen(). So
//
// - no fork happens while this library walks, and no walk begins while a fork is running. Each waits for the
//   other, for at most kPatienceNs (loader_walk.cpp), so that no order of other locks makes it a deadlock;
// - a child inspects the lock without taking it, and walks only if no thread held it at the fork. The
//   program's own threads may have held it.
//
// New threads, vfork() and posix_spawn() continue in this memory with this lock: they are no forks here. Any
// thread and any handler may call these functions. Nothing is allocated, with one exception: the first walk
// calls dlsym(), which may allocate. That is usually in this library's constructor.
#pragma once

#include <link.h>

#include <cstddef>

namespace penstock::interpose {

using Visit = int (*)(dl_phdr_info* about, std::size_t bytes, void* with);

// dl_iterate_phdr(). Returns 0 and visits nothing if the lock is known to be held by a thread that does not
// exist. `visit` runs under the loader's lock: it must not wait, call the loader or allocate.
int walk_objects(Visit visit, void* with) noexcept;
// For wrapped calls, which skip the walk if they would have to wait: no fork is running, and the lock can be
// taken.
bool may_walk_objects() noexcept;
// In a child: the lock is, or may be, held for ever, so that nothing can be loaded or unloaded any more.
bool loader_is_stuck() noexcept;

// Around each fork, by the thread that forks; in its child forget_parents_walks() instead of the second.
void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void forget_parents_walks() noexcept;

// In a child that was forked without libc's fork(): the lock that dlsym() and dlopen() use is renewed by
// fork() only.
void note_raw_fork() noexcept;
bool is_raw_child() noexcept;

}  // namespace penstock::interpose
