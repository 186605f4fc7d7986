// Keeps walks and forks from happening at the same time. A walk is a call of dl_iterate_phdr(): it visits all
// loaded objects, that is, the program and its shared libraries.
//
// The danger: during a walk the thread holds a lock of the loader, here called the loader's lock. glibc does
// not renew this lock in a fork's child. If another thread held it at the fork, the child would wait for ever
// at its next walk, and when dlopen() loads an object. Therefore:
//
// - No fork happens during a walk of this library, and no walk begins during a fork. Forks and walks wait for
//   each other, but at most 5 s. So this waiting can never become a deadlock, whatever other locks are held.
// - A child inspects the lock without taking it. If the lock was held at the fork, perhaps by a thread of the
//   program, the child never walks. If this library could not find the lock, its state is not known. Then
//   may_walk_objects() and loader_is_stuck() tell callers not to walk.
//
// Making a thread, vfork() and posix_spawn() do not count as forks here, because the new thread or child
// shares this memory and this lock.
//
// Threads: any thread, and any handler.
// Locks: none of this library. walk_objects() holds the loader's lock while it visits.
// Memory: only the first walk of a process may allocate, because it calls dlsym(). It is usually made in this
// library's constructor.
#pragma once

#include <link.h>

#include <cstddef>

namespace penstock::interpose {

using Visit = int (*)(dl_phdr_info* info, size_t bytes, void* context);

// Calls `visit` for each loaded object, as dl_iterate_phdr() does, and returns what the last `visit`
// returned. If the loader's lock is held for ever (in a fork's child), it visits nothing and returns 0.
// `visit` runs under the loader's lock: it must not wait, call the loader or allocate.
int walk_objects(Visit visit, void* context) noexcept;
// True if a walk would not have to wait: no fork is running, and the loader's lock is known to be usable.
// Wrapped calls check this first, and do not walk if it is false.
bool may_walk_objects() noexcept;
// True if the loader's lock is held for ever in this process (a fork's child), or if its state is not known.
// Callers must not walk then. If the lock is held, nothing can be loaded or unloaded in this process. If its
// state is only unknown, other threads may still load objects.
bool loader_is_stuck() noexcept;

// Waits until no walk is running, at most 5 s, and makes new walks wait for the end of the fork. Called
// before each fork by the thread that forks.
void before_fork() noexcept;
// Lets walks begin again. Called after the fork in the parent, by the thread that forked.
void after_fork_in_parent() noexcept;
// Resets the numbers of walks and forks in a fork's child, and inspects the loader's lock. After a wrapped
// fork the child's only thread calls it before anything that may walk. After a fork without a wrapper, the
// first walk calls it, in any thread.
void forget_parents_walks() noexcept;

// True in every child of a fork. There this library never calls dlsym() or dlopen(). If a thread of the
// parent was loading an object at the fork, the loader's lists are half changed in the child: dlopen() may
// end the process, and it may run the constructors of an object that is half loaded. After _Fork(), clone()
// or a system call both functions may also wait for ever, because only libc's fork() renews the lock that
// they take. Any thread and any handler may call this; it takes no lock.
bool is_fork_child() noexcept;

}  // namespace penstock::interpose
