// Lists and opens the files of a session's folder while processes write to them.
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <vector>

#include "io_backends/core/result.hpp"
#include "profiling/session_abi.h"

namespace penstock {

// O_NONBLOCK: if the file is a pipe, the open must not wait for a writer.
inline constexpr int kSessionOpenFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

// The paths of all files in the folder with the suffix of session files, sorted by name. The system's error
// if the folder cannot be read.
Result<std::vector<std::filesystem::path>> session_files(const std::filesystem::path& folder);
// Reads the header; neither closes the descriptor nor moves its file position. False if it is no session file
// of this version and byte order. `header` then contains the bytes that could be read.
bool read_header(int fd, penstock_session_header& header);

}  // namespace penstock
