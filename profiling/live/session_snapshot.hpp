// Copies what recording processes have written so far. It only reads their files: nothing is injected into
// the processes, and they do not wait. Several snapshots may be made at the same time.
#pragma once

#include <filesystem>

#include "io_backends/core/result.hpp"
#include "profiling/live/recording_process.hpp"

namespace penstock {

// Copies every session file of the folder, and its session.json, to a new session folder with mode 0700. The
// session may run or have ended. `to` must not exist or must be empty. Errors: not_found if the folder has no
// session file; already_exists if `to` is not empty; interrupted; or the system's error for a file that
// cannot be read or written. On an error the unfinished copy is removed.
Result<void> snapshot_session(const std::filesystem::path& folder, const std::filesystem::path& to);
// Copies the file `process.file` (the newest one of a process) to a new session at `to`, which must not exist
// or must be empty. Errors: already_exists if `to` is not empty; interrupted; or the system's error for a
// file that cannot be read or written. On an error the unfinished copy is removed.
Result<void> snapshot_process(const RecordingProcess& process, const std::filesystem::path& to);

}  // namespace penstock
