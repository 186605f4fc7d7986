// A loaded object, as the loader keeps it in memory: where it calls other objects' functions.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "profiling/interpose/hooks/wrapped.hpp"

namespace penstock::interpose {

struct SlotPlace {
  std::uintptr_t* at;
  const char* name;
  bool is_call;       // a JUMP_SLOT, which may wait to be bound
  bool is_undefined;  // the object has no such function itself
};

class SlotObject {
 public:
  explicit SlotObject(const dl_phdr_info& about) noexcept;
  void each(void (*visit)(const SlotPlace& place, void* with), void* with) const noexcept;
  bool has_code_at(std::uintptr_t address) const noexcept;
  // The loader makes this read-only once it has bound everything there (RELRO).
  bool is_protected(const void* at) const noexcept;
  // It has not done so yet: addresses may be as they are in the file.
  bool is_being_loaded() const noexcept;
  // At once for whoever reads it; what is protected is so again afterwards.
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

// Whether this process may write there; nothing is changed.
bool is_writable(void* at) noexcept;

// What stands in for the loader's own functions, which are told by who calls them: these leave no frame.
struct LoaderWrapper {
  Wrapped* wrapped;
  void (*wrapper)();
};
std::span<const LoaderWrapper> loader_wrappers() noexcept;
// Before a slot leads to one of them.
void ready_loader_wrappers() noexcept;
// A load begins.
void will_load() noexcept;

}  // namespace penstock::interpose
