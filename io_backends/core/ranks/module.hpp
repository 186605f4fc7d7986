// Libraries of Penstock's own that it opens while it runs, so that without them it needs nothing of what they
// link.
#pragma once

#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

// Where `file` ("libpenstock_profile.so") lies: next to the program, or in the installation's folder for
// libraries. `unsupported`, its message half a sentence: "libpenstock_mpi.so lies neither ...". Any thread.
Result<std::string> module_path(const char* file);

// The address of `symbol` in such a file, opened with RTLD_NOW and `flags`; it stays open. `unsupported` as
// above. Any thread.
Result<void*> module_symbol(const char* file, const char* symbol, int flags);

}  // namespace penstock
