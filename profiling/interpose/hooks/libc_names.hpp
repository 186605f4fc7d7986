// Finds a function of libc by its name, by reading libc's symbol table in memory. libc_function() takes no
// lock and does not call the loader. So any thread may call it, also in a fork's child and in a signal
// handler.
#pragma once

namespace penstock::interpose {

// Asks the loader where libc is, and stores that for libc_function(). Called once, when the library is
// loaded.
void note_libc() noexcept;
// Whether note_libc() has been called. Constructors of other libraries may make calls before that.
bool knows_libc() noexcept;
// Returns the default version of libc's function `name`. Returns null if libc has no such function, or if
// note_libc() has not been called yet.
void* libc_function(const char* name) noexcept;

}  // namespace penstock::interpose
