// Where the processes of this machine record to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

// The folder that a running process records to, by what it has mapped, or else its environment; "" where it
// is not watched or may not be looked at.
std::string recording_folder_of(std::uint32_t pid);
// All folders that processes of this machine record to.
std::vector<std::string> recording_folders();

}  // namespace penstock
