// Opens Penstock's own libraries at run time, so that the program does not need the libraries that they link.
#pragma once

#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

// Returns the path of `file` ("libpenstock_profile.so"): next to the program, or in the library folder of the
// installation. Fails with `unsupported` if it is in neither; the message is a part of a sentence
// ("libpenstock_mpi.so is neither ..."). Any thread may call it.
Result<std::string> module_path(const char* file);

// Opens the library `file` by dlopen() with RTLD_NOW and `flags`, and returns the address of `symbol` in it.
// The library stays open. Fails with `unsupported` if module_path() fails, or if the library cannot be opened
// or lacks the symbol. Any thread may call this.
Result<void*> module_symbol(const char* file, const char* symbol, int flags);

}  // namespace penstock
