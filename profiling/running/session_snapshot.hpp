// What processes that record have done up to now, as a session of its own. Nothing runs in them for it.
#pragma once

#include <filesystem>

#include "io_backends/base/result.hpp"
#include "profiling/running/recording_process.hpp"

namespace penstock {

// What all of them did up to now, as a session of its own, mode 0700 (also of a session that has ended):
// every file of the folder and its note. `to` is new or empty.
Result<void> snapshot_session(const std::filesystem::path& folder, const std::filesystem::path& to);
// Likewise of one process: its newest file alone.
Result<void> snapshot_process(const RecordingProcess& process, const std::filesystem::path& to);

}  // namespace penstock
