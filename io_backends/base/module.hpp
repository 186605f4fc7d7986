// Libraries of Penstock's own that it opens while it runs, so that without them it needs nothing of what they
// link.
#pragma once

#include "io_backends/base/result.hpp"

namespace penstock {

// The address of `symbol` in `file` ("libpenstock_mpi.so"), which lies beside the program or in the
// installation's folder for libraries, opened with RTLD_NOW and `flags`; it stays open. `unsupported`, its
// message half a sentence: "libpenstock_mpi.so lies neither ...". Any thread.
Result<void*> module_symbol(const char* file, const char* symbol, int flags);

}  // namespace penstock
