// One loaded object as it is in memory: where it calls other objects' functions.
//
// Callers: slots.cpp, in the thread that holds Control (all signals blocked), inside a walk over the loaded
// objects, that is, under the loader's lock; is_preloaded() in any thread, also inside a walk. Therefore
// nothing here calls the loader, waits, or allocates, except store() and is_writable(), which make system
// calls.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

#include "profiling/interpose/hooks/wrapped.hpp"

namespace penstock::interpose {

struct SlotPlace {
  std::uintptr_t* at;
  const char* name;
  bool is_call;       // a JUMP_SLOT: the loader may bind it at the first call
  bool is_undefined;  // the object has no such function itself
};

class SlotObject {
 public:
  explicit SlotObject(const dl_phdr_info& about) noexcept;
  void each(void (*visit)(const SlotPlace& place, void* with), void* with) const noexcept;
  bool has_code_at(std::uintptr_t address) const noexcept;
  // The loader makes this read-only once it has bound everything there (RELRO).
  bool is_protected(const void* at) const noexcept;
  // The loader has not done so yet: addresses may still be as they are in the file.
  bool is_being_loaded() const noexcept;
  // Stores a whole word, which other threads read while they call through the slot. A protected page is made
  // writable for the store and read-only again.
  void store(std::uintptr_t* at, std::uintptr_t value) const noexcept;
  const dl_phdr_info& about() const noexcept { return about_; }
  std::uintptr_t end() const noexcept { return end_; }

 private:
  void each_of(std::uintptr_t relocations, std::uintptr_t bytes, void (*visit)(const SlotPlace&, void*),
               void* with) const noexcept;
  std::uintptr_t address(std::uintptr_t pointer) const noexcept;

  const dl_phdr_info& about_;
  std::uintptr_t symbols_ = 0;
  std::uintptr_t strings_ = 0;
  std::uintptr_t relocations_ = 0;
  std::uintptr_t relocation_bytes_ = 0;
  std::uintptr_t calls_ = 0;
  std::uintptr_t call_bytes_ = 0;
  std::uintptr_t protected_ = 0;
  std::uintptr_t protected_end_ = 0;
  std::uintptr_t end_ = 0;
};

// Whether this process may write there, without changing anything.
bool is_writable(void* at) noexcept;

// Calls `add` with each wrapper of the loader's own functions, which find out by the return address who calls
// them. So these wrappers leave no frame on the stack. They jump to what `wrapped.real` has, which must be
// found before a slot is set to one of them.
void add_loader_wrappers(void (*add)(Wrapped& wrapped, std::uintptr_t wrapper)) noexcept;
// Any thread, before a load: from now on objects may have been loaded that were not seen. No lock.
void will_load() noexcept;

}  // namespace penstock::interpose
