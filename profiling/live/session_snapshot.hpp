// Copies what recording processes have written so far. No code runs in these processes. Several snapshots may
// be made at the same time.
#pragma once

#include <filesystem>

#include "io_backends/core/result.hpp"
#include "profiling/live/recording_process.hpp"

namespace penstock {

// Copies every session file of the folder, and its session.json, to a new session folder with mode 0700. Also
// works for a session that has ended. `to` must not exist or must be empty. Errors: not_found: the folder has
// no session file; interrupted; or the system's error for a file that cannot be read or written. On an error
// the unfinished copy is removed.
Result<void> snapshot_session(const std::filesystem::path& folder, const std::filesystem::path& to);
// Copies the file `process.file` (the newest one of a process) to a new session at `to`, which must not exist
// or must be empty. Errors: interrupted; already_exists; or the system's error for a file that cannot be read
// or written. On an error the unfinished copy is removed.
Result<void> snapshot_process(const RecordingProcess& process, const std::filesystem::path& to);

}  // namespace penstock
