// Writes a trace for TensorBoard's profile plugin: an XSpace (tsl/profiler/protobuf/xplane.proto) with a
// plane of threads and a plane of files. Times are counted from `begin_ns`, nanoseconds since 1970.
#pragma once

#include <cstdint>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "profiling/exporters/session_export.hpp"
#include "profiling/session/named_files.hpp"
#include "profiling/session/session.hpp"

namespace penstock {

// Writes the `most` longest recorded calls, each on the line of its thread and on the line of its file. Also
// writes up to `most` spans of the program. Uses 64 bytes of memory for each call and span. Adds to `counts`
// how many calls were written and how many were left out.
Result<void> write_xplane(const Session& session, const NamedFiles& files, int64_t begin_ns, uint64_t most,
                          WholeFile& to, ExportCounts& counts);

}  // namespace penstock
