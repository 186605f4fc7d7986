// Lists and opens the files of a session's folder while processes write to them.
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <vector>

#include "io_backends/core/result.hpp"
#include "profiling/session_abi.h"

namespace penstock {

// Flags to open a session file. O_NONBLOCK is for safety: if an attacker puts a pipe in place of the file,
// open() could otherwise wait for ever.
inline constexpr int kSessionOpenFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

// Returns the paths of all files in the folder that have the suffix of session files, sorted by name. Error:
// that of the system if the folder cannot be read.
Result<std::vector<std::filesystem::path>> session_files(const std::filesystem::path& folder);
// Reads the header; neither closes the descriptor nor moves its file position. Returns false if the file is
// no session file of this version and byte order. In that case `header` contains as many bytes as could be
// read.
bool read_header(int fd, penstock_session_header& header);

}  // namespace penstock
