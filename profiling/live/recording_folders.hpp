// Finds the folders into which the processes of this machine record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// Returns the folder into which a running process records: the folder of the session file that it has mapped,
// or, if it has mapped none, the folder that its environment names. Returns "" if the process is not watched,
// or if this user may not inspect it.
std::string recording_folder_of(uint32_t pid);
// The folders of all processes of this machine that record. Fails if /proc cannot be read.
Result<std::vector<std::string>> recording_folders();

}  // namespace penstock
