// A trace for TensorBoard's profile plugin: an XSpace (tsl/profiler/protobuf/xplane.proto) with a plane of
// threads and one of files. Times are since `begin_ns` (realtime).
#pragma once

#include <cstdint>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "profiling/exporters/session_export.hpp"
#include "profiling/session/named_files.hpp"
#include "profiling/session/session.hpp"

namespace penstock {

// Of the calls that were kept the `most` longest ones, each on the line of its thread and on that of its
// file; and as many spans that the program gave. Takes 64 bytes for each. Adds to `counts`
// which calls are in it.
Result<void> write_xplane(const Session& session, const NamedFiles& files, std::int64_t begin_ns,
                          std::uint64_t most, WholeFile& to, ExportCounts& counts);

}  // namespace penstock
