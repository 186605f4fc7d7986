// Copies of what processes that record have written up to now. Nothing runs in them for it, and several
// snapshots may be made at a time.
#pragma once

#include <filesystem>

#include "io_backends/core/result.hpp"
#include "profiling/live/recording_process.hpp"

namespace penstock {

// What all of them did up to now, as a session of its own, mode 0700 (also of a session that has ended):
// every file of the folder and its note. `to` is new or empty. not_found: the folder has no file of a
// process; interrupted, or what the system says of a file that cannot be read or written: what was started is
// removed.
Result<void> snapshot_session(const std::filesystem::path& folder, const std::filesystem::path& to);
// Likewise of one process: its newest file alone.
Result<void> snapshot_process(const RecordingProcess& process, const std::filesystem::path& to);

}  // namespace penstock
