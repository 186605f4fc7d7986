// libc's own function of a name, found in its symbols in memory: nothing of the loader's is called and no
// lock is taken, so it may be asked for in a fork's child and in a signal's handler. Any thread.
#pragma once

namespace penstock::interpose {

// When the library is loaded: the loader says where libc is.
void note_libc() noexcept;
// Of the default version. Null where libc has none, and before libc is known.
void* libc_function(const char* name) noexcept;

}  // namespace penstock::interpose
