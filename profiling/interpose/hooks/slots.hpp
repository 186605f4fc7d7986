// Leads a running program's calls to the wrappers. Where the library was preloaded, the loader has done that.
// Where it was attached, or opened by the program, slots are rewritten while threads run: the words by which
// the loaded objects call other objects' functions or keep their addresses (relocations JUMP_SLOT and
// GLOB_DAT, and addresses in data). They are restored when recording ends. A slot is changed only if it has
// the function that the wrapper replaces, or waits to be bound to it. A slot that has another library's
// function of that name stays.
//
// Locks: rewrite_slots() and restore_slots() are for the thread that holds Control (recording.hpp), which
// blocks all signals. The rest is for any thread and any handler, with no lock held.
// Memory: from the kernel, but rewrite_slots() calls dlsym() and dlopen(), which may call malloc. So it must
// not be called in a handler or by an allocator; look_for_objects() says how that is avoided.
// Forks: none happens during a walk over the objects (loader_walk.hpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::interpose {

// Whether the library was loaded before the program's own libraries, so that all calls lead to it already.
bool is_preloaded() noexcept;

struct SlotCounts {
  std::uint64_t slots = 0;  // that lead to the wrappers, or have their first value again
  std::uint64_t objects = 0;
  std::uint64_t differing = 0;  // of restore_slots(): have another value, which is not a wrapper either
  std::uint64_t unloaded = 0;   // likewise: were in objects that have been unloaded
};
// In all objects that are loaded now, also in those loaded since the last time. 0 slots: no memory.
SlotCounts rewrite_slots() noexcept;
SlotCounts restore_slots() noexcept;

// If objects may have been loaded (session.may_have_loaded), a call that is likely to use them next calls
// look_for_objects(), which does nothing if none was. Any thread. errno is not kept.
bool worth_a_look() noexcept;
bool has_unseen_objects() noexcept;
[[gnu::cold]] void look_for_objects() noexcept;

}  // namespace penstock::interpose
