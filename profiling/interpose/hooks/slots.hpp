// How calls come to the wrappers where the library was not there when the program was linked to its own
// (it was attached, or opened by the program): the slots by which the loaded objects call other objects'
// functions, and keep their addresses (relocations JUMP_SLOT and GLOB_DAT, and addresses in data), are
// rewritten from the function to its wrapper, while threads run, and back. A slot is changed only if it holds
// the function that the wrapper stands in for, or waits to be bound to it; what is bound to somebody else's
// function of that name stays so.
//
// To rewrite and to restore is for who holds Control (recording.hpp); the rest is for any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::interpose {

// Whether the library was loaded before the program's own, so that everything is bound to it already.
bool is_preloaded() noexcept;

struct Rewritten {
  std::uint64_t slots = 0;
  std::uint64_t objects = 0;
};
// All that are loaded now; also those that were loaded since the last time. Null slots: there is no memory.
Rewritten rewrite_slots() noexcept;

struct Restored {
  std::uint64_t slots = 0;  // hold their first value again
  std::uint64_t objects = 0;
  std::uint64_t differing = 0;  // hold something else, which is no wrapper either
  std::uint64_t unloaded = 0;   // are gone with their objects
};
Restored restore_slots() noexcept;

// Where objects may have been loaded (session.may_have_loaded), who is about to use them calls
// look_for_objects(), which does nothing where none was.
bool worth_a_look() noexcept;
bool has_unseen_objects() noexcept;
[[gnu::cold]] void look_for_objects() noexcept;

}  // namespace penstock::interpose
