// Opens Penstock's own libraries at run time, so that the program does not need the libraries that they link.
#pragma once

#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

// Returns the path of `file` ("libpenstock_profile.so"): next to the program, or in the library folder of the
// installation. `unsupported` if it is in neither; the message is half a sentence ("libpenstock_mpi.so is
// neither ..."). Any thread.
Result<std::string> module_path(const char* file);

// Opens a library by dlopen() with RTLD_NOW and `flags`, and returns the address of `symbol` in it. The file
// stays open. `unsupported` as for module_path(). Any thread.
Result<void*> module_symbol(const char* file, const char* symbol, int flags);

}  // namespace penstock
