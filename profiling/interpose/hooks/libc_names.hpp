// Finds a function of libc by its name, by reading libc's symbol table in memory. This calls no function of
// the loader and takes no lock. So any thread may call it, also in a fork's child and in a signal handler.
#pragma once

namespace penstock::interpose {

// Called once, when the library is loaded: asks the loader where libc is.
void note_libc() noexcept;
// Returns the default version of the function `name`. Null if libc has no such function, and before
// note_libc().
void* libc_function(const char* name) noexcept;

}  // namespace penstock::interpose
