// Finds libc's own function of a name by reading libc's symbol table in memory. It calls nothing of the
// loader and takes no lock. So any thread may call it, also in a fork's child and in a signal handler.
#pragma once

namespace penstock::interpose {

// Called once, when the library is loaded: asks the loader where libc is.
void note_libc() noexcept;
// The function's default version. Null if libc has none, and before note_libc().
void* libc_function(const char* name) noexcept;

}  // namespace penstock::interpose
