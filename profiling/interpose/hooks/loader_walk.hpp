// Walks over the loaded objects, and forks. dl_iterate_phdr() holds a lock of the loader's which glibc does
// not renew in a fork's child: where another thread held it at the fork, the child waits for ever at its next
// walk, and at its next dlopen(). So
//
//   - no fork happens while this library walks, and no walk begins while a fork is under way: each waits for
//     the other, at most kPatienceNs (loader_walk.cpp), so that no order of other locks makes it a deadlock;
//   - a child looks at the lock, without taking it, and walks only if nobody held it at the fork, for the
//     program's own threads may have held it.
//
// Threads that are made, vfork() and posix_spawn() go on in this memory, with this lock: they are no forks
// here. Any thread and handler may call these; nothing is allocated.
#pragma once

#include <link.h>

#include <cstddef>

namespace penstock::interpose {

using Visit = int (*)(dl_phdr_info* about, std::size_t bytes, void* with);

// dl_iterate_phdr(). 0, and nothing visited, where the lock is known to be held by nobody who is there.
int walk_objects(Visit visit, void* with) noexcept;
// For watched calls, which would rather not walk than wait: no fork is under way, and the lock can be taken.
bool may_walk_objects() noexcept;
// In a child: the lock is held for ever, so that nothing can be loaded or unloaded any more.
bool loader_is_stuck() noexcept;

// Around each fork, by the thread that forks; in its child the last one instead of the second.
void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void forget_parents_walks() noexcept;

// In a child that was forked without libc's fork(): dlsym() and dlopen() have a lock as well, which only
// fork() renews.
void note_raw_fork() noexcept;
bool is_raw_child() noexcept;

}  // namespace penstock::interpose
