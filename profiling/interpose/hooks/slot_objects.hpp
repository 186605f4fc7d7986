// Finds and changes the slots of one loaded object (the program or a shared library). A slot is a word that
// has the address of a function of another object (slots.hpp).
//
// Callers: slots.cpp calls SlotObject and is_writable() inside a walk over the loaded objects
// (loader_walk.hpp), and so under the loader's lock. Therefore they do not call the loader, wait or allocate.
// store() and is_writable() make direct system calls.
// Threads: the thread that holds Control (recording.hpp), which has all its signals blocked. Exceptions:
// will_load(), and is_preloaded() (slots.cpp) with what it calls, run in any thread, without Control.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

#include "profiling/interpose/hooks/wrapped.hpp"

namespace penstock::interpose {

// One slot of the object, as its relocations describe it.
struct FoundSlot {
  uintptr_t* address;
  const char* name;
  bool is_call_slot;  // a JUMP_SLOT: the loader may bind it at the first call
  bool is_undefined;  // the object does not define this function itself
};

class SlotObject {
 public:
  explicit SlotObject(const dl_phdr_info& info) noexcept;
  // Calls `visit` for each slot.
  void each_slot(void (*visit)(const FoundSlot& found, void* context), void* context) const noexcept;
  // Whether the address is in code of this object.
  bool has_code_at(uintptr_t address) const noexcept;
  // Whether `at` is in the part that the loader makes read-only after it has bound all slots in it (RELRO).
  bool is_protected(const void* at) const noexcept;
  // True while the loader has not yet made the RELRO part read-only. Until then slots may still have the
  // values that the object's file gives them.
  bool is_being_loaded() const noexcept;
  // Stores `value` in the slot at `at` by one instruction, because other threads may be calling a function
  // through the slot. If its page is protected, the page is made writable for the store and read-only again
  // after it.
  void store(uintptr_t* at, uintptr_t value) const noexcept;
  const dl_phdr_info& info() const noexcept { return info_; }
  uintptr_t end() const noexcept { return end_; }

 private:
  void each_slot_in(uintptr_t relocations, uintptr_t bytes, void (*visit)(const FoundSlot&, void*),
                    void* context) const noexcept;
  uintptr_t to_address(uintptr_t pointer) const noexcept;

  const dl_phdr_info& info_;
  uintptr_t symbols_ = 0;
  uintptr_t strings_ = 0;
  uintptr_t relocations_ = 0;
  uintptr_t relocation_bytes_ = 0;
  uintptr_t call_slots_ = 0;
  uintptr_t call_slot_bytes_ = 0;
  uintptr_t protected_begin_ = 0;
  uintptr_t protected_end_ = 0;
  uintptr_t end_ = 0;
};

// Whether the memory at `at` is writable. Does not change that memory, which other threads may be writing to.
bool is_writable(void* at) noexcept;

// Calls `add` with each wrapper of dlopen(), dlsym() and similar functions. These functions find their caller
// by the return address, so their wrappers leave no frame on the stack: they jump to the function in
// `wrapped.real`. That function must be found before a slot is made to lead to the wrapper.
void add_loader_wrappers(void (*add)(WrappedFunction& wrapped, uintptr_t wrapper)) noexcept;
// Notes that there may soon be objects whose slots are not rewritten. Called before a thread loads an object.
// Any thread may call it; it takes no lock.
void will_load() noexcept;

}  // namespace penstock::interpose
