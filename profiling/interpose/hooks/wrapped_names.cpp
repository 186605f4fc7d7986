// Fills the table of wrapped names and searches it by hash.
//
// Threads, locks and memory: see wrapped_names.hpp.
#include "profiling/interpose/hooks/wrapped_names.hpp"

#include <string.h>

#include "profiling/interpose/hooks/libc_names.hpp"
#include "profiling/interpose/hooks/slot_objects.hpp"

extern "C" {
// The start and the end of the section to which PENSTOCK_WRAPPED adds an entry for each wrapped function.
extern penstock::interpose::WrappedFunction __start_penstock_wrapped[] __attribute__((visibility("hidden")));
extern penstock::interpose::WrappedFunction __stop_penstock_wrapped[] __attribute__((visibility("hidden")));
}

namespace penstock::interpose {

WrappedName wrapped_names[kMostNames];
size_t wrapped_name_count = 0;

namespace {

constexpr size_t kNameTableSize = 4096;
const char* name_texts[kMostNames];
uint16_t name_table[kNameTableSize];  // index in wrapped_names + 1; 0: this entry is free
bool has_library_names = false;
bool has_libc_names = false;

// The hash of a name: the index in name_table where looking up the name begins. Written without calls of
// other functions, because it is called under the loader's lock, where strcmp() is the only function of libc
// that may be called.
size_t first_index_of(const char* name) noexcept {
  uint32_t hash = 2166136261U;
  for (; *name != 0; ++name) {
    hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619U;
  }
  return hash % kNameTableSize;
}

void add_name(WrappedFunction& wrapped, uintptr_t wrapper) noexcept {
  if (wrapper == 0) {
    return;
  }
  size_t name = find_name(wrapped.name);
  if (name == kMostNames) {
    if (wrapped_name_count == kMostNames) {
      return;
    }
    name = wrapped_name_count++;
    size_t i = first_index_of(wrapped.name);
    while (name_table[i] != 0) {
      i = (i + 1) % kNameTableSize;
    }
    name_table[i] = uint16_t(name + 1);
    name_texts[name] = wrapped.name;
  }
  wrapped_names[name].copies[wrapped.copy] = &wrapped;
  wrapped_names[name].wrappers[wrapped.copy] = wrapper;
  wrapped_names[name].is_of_library = wrapped.wrapper != nullptr;
}

}  // namespace

size_t find_name(const char* text) noexcept {
  if (text[0] == '_' && text[1] == 'Z') {
    return kMostNames;  // a C++ name, never wrapped; an object may have 100,000 of them
  }
  for (size_t i = first_index_of(text); name_table[i] != 0; i = (i + 1) % kNameTableSize) {
    if (strcmp(name_texts[name_table[i] - 1U], text) == 0) {
      return name_table[i] - 1U;
    }
  }
  return kMostNames;
}

void find_library_names() noexcept {
  if (has_library_names) {
    return;
  }
  has_library_names = true;
  for (WrappedFunction* wrapped = __start_penstock_wrapped; wrapped != __stop_penstock_wrapped; ++wrapped) {
    if (wrapped->wrapper != nullptr) {
      add_name(*wrapped, wrapped->wrapper());
    }
  }
  add_loader_wrappers(&add_name);
}

void find_libc_names() noexcept {
  if (has_libc_names) {
    return;
  }
  has_libc_names = true;
  for (WrappedFunction* wrapped = __start_penstock_wrapped; wrapped != __stop_penstock_wrapped; ++wrapped) {
    if (wrapped->wrapper == nullptr) {
      add_name(*wrapped, reinterpret_cast<uintptr_t>(own_function(wrapped->name)));
    }
  }
}

}  // namespace penstock::interpose
