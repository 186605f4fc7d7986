// Redirects a running program's calls to the wrappers, by rewriting slots. A slot is a word through which a
// loaded object calls a function of another object, or which has that function's address. Its relocation is
// JUMP_SLOT, GLOB_DAT or an address in data.
//
// If the library was preloaded, the loader has bound all slots to the wrappers already. If it was attached,
// or opened by the program, slots are rewritten while threads run, and restored when recording ends. A slot
// is rewritten only if it has the function that the wrapper replaces, or if the loader has not bound it yet.
// A slot with another library's function of that name is not changed.
//
// Threads: rewrite_slots() and restore_slots() are for the thread that holds Control (recording.hpp), which
// blocks all signals. The other functions are for any thread and any handler.
// Locks: rewrite_new_objects() takes Control. The other functions take no lock of this library; walks take
// the loader's lock.
// Memory: from the kernel, but rewrite_slots() calls dlsym() and dlopen(), which may call malloc. So it must
// not run inside malloc: of all wrappers, only those of open() and dlsym() and their variants call
// rewrite_new_objects(), and allocators do not call these.
// Forks: none happens during a walk over the objects (loader_walk.hpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::interpose {

// Whether the library was loaded before the program's own libraries, so that all calls lead to it already.
bool is_preloaded() noexcept;

struct SlotCounts {
  uint64_t slots = 0;  // rewrite_slots(): rewritten slots; restore_slots(): slots with their first value
  uint64_t objects = 0;
  // restore_slots(): slots that have neither their first value nor the function that the wrapper replaces
  uint64_t unrestored = 0;
  uint64_t unloaded = 0;  // restore_slots(): slots of objects that were unloaded
};
// rewrite_slots() works on all objects that are loaded now, also on those loaded since the last call. It
// returns 0 slots if there is no memory.
SlotCounts rewrite_slots() noexcept;
SlotCounts restore_slots() noexcept;

// Whether another search for new objects is worth its time. Any thread; takes no lock of this library.
bool search_may_find_objects() noexcept;
// Whether objects exist that were loaded since the last search. Any thread; walks over the objects.
bool has_unseen_objects() noexcept;
// Rewrites the slots of objects that were loaded since the last search. The wrappers of open() and dlsym()
// call it while session.may_have_loaded is set, because the program is likely to use new objects next. Any
// thread; takes Control. errno may change.
[[gnu::cold]] void rewrite_new_objects() noexcept;

}  // namespace penstock::interpose
