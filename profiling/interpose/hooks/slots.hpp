// Redirects a running program's calls to the wrappers, by rewriting slots. A loaded object is the program or
// a shared library. A slot is a word through which a loaded object calls a function of another object, or
// which has that function's address. The slot's relocation is JUMP_SLOT, GLOB_DAT or an address in data. A
// search is one run of rewrite_slots(), which looks for slots in all loaded objects.
//
// If this library was preloaded, the loader has bound the slots of libc's functions to the wrappers already,
// except in objects that were opened with RTLD_DEEPBIND. All other slots are rewritten: those of functions
// that are not libc's (library_copies.hpp), when the program begins and after each dlopen(). If this library
// was attached, or opened by the program, all slots are rewritten while threads run, and restored when
// recording ends. A slot is rewritten only if it has the function that the wrapper replaces, or if the loader
// has not bound it yet. If another library has a function of the same name, slots that have that function are
// not changed.
//
// Threads: rewrite_slots() and restore_slots() are for the thread that holds Control, the lock for changing
// what is recorded (recording.hpp). Control blocks all signals of that thread. The other functions are for
// any thread and any handler.
// Locks: rewrite_new_objects() takes Control. The other functions take no lock of this library. A walk over
// the loaded objects holds the loader's lock (loader_walk.hpp).
// Memory: from the kernel, but rewrite_slots() calls dlsym() and dlopen(), which may call malloc. So it must
// not run inside malloc. Therefore only the wrappers of open() and dlsym() and their variants call
// rewrite_new_objects(): allocators do not call these functions.
// Forks: none happens during a walk.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::interpose {

// Whether the library was loaded before the program's own libraries. Then the loader has bound the calls of
// libc's functions to the wrappers.
bool is_preloaded() noexcept;

struct SlotCounts {
  uint64_t slots = 0;  // rewrite_slots(): rewritten slots; restore_slots(): restored slots
  uint64_t objects = 0;
  // restore_slots(): slots that have neither their first value nor the function that the wrapper replaces
  uint64_t unrestored = 0;
  uint64_t unloaded = 0;  // restore_slots(): slots of objects that were unloaded
};
// rewrite_slots() makes the slots of all loaded objects lead to the wrappers. If `also_of_libc` is false,
// only slots of functions that are not libc's, and of dlopen() and its like. Later calls do the same for
// objects that were loaded since the call before. If there is too little memory, some slots are not
// rewritten. restore_slots() makes all slots lead to the program's own functions again.
SlotCounts rewrite_slots(bool also_of_libc = true) noexcept;
SlotCounts restore_slots() noexcept;

// Whether objects exist that no search has seen. It looks only a limited number of times after each load;
// after that it returns false at once. Any thread may call it; it takes no lock of this library.
bool search_may_find_objects() noexcept;
// Whether objects exist that were loaded since the last search. Any thread may call it; it walks over the
// objects.
bool has_unseen_objects() noexcept;
// Rewrites the slots of objects that were loaded since the last search. The wrappers of open() and dlsym()
// call it while session.may_have_new_objects is set, because the program is likely to use new objects next.
// Any thread that does not hold Control may call it; it takes Control if there are new objects. errno may
// change.
[[gnu::cold]] void rewrite_new_objects() noexcept;

}  // namespace penstock::interpose
