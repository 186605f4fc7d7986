// Finds functions by their names, by reading the symbol tables of loaded objects in memory. Only note_libc(),
// object_of() and, outside of a fork's child, find_in_libraries() call the loader. A signal handler may call
// all functions except note_libc().
#pragma once

#include <link.h>

namespace penstock::interpose {

// Asks the loader where libc and this library are. Called when the library is loaded, or before the
// first walk if that is earlier. Two threads may call it at once, because both find the same.
void note_libc() noexcept;
// Whether note_libc() has been called. Constructors of other libraries may make calls before that.
bool knows_libc() noexcept;
// Returns the default version of libc's function `name`. Returns null if libc has no such function, or if
// note_libc() has not been called yet. Takes no lock.
void* libc_function(const char* name) noexcept;
// Returns this library's function `name`, or null. Takes no lock.
void* own_function(const char* name) noexcept;
// Whether the object of a walk is this library. Takes no lock.
bool is_own(const dl_phdr_info& info) noexcept;
// Returns the loaded object that has this address; null if there is none. Asks the loader, which takes its
// lock: not for a walk or a fork's child.
const link_map* object_of(const void* address) noexcept;
// Returns the function `name` of the first loaded library that has it, and is not this library; null if there
// is none. The loader's lock is taken only for the walk (loader_walk.hpp), and in a fork's child not at all.
void* find_in_libraries(const char* name) noexcept;
// Returns the function `name` of the loaded object `path` ("": the program), or else of the objects that it
// needs. Reads the loader's list without its lock: only a fork's child calls this (is_fork_child()).
void* find_in_scope(const char* path, const char* name) noexcept;

}  // namespace penstock::interpose
