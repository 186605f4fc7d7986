// The files of a session's folder, looked at while processes write to them.
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <vector>

#include "io_backends/core/result.hpp"
#include "profiling/session_abi.h"

namespace penstock {

// What is no plain file is never opened for good: a pipe would hold us up.
inline constexpr int kSessionOpenFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

// All that have a session's suffix, by name, each with the folder before it. What the system says where that
// cannot be read.
Result<std::vector<std::filesystem::path>> session_files(const std::filesystem::path& folder);
// The descriptor stays the caller's, its position where it is. False where it is no session's file, of this
// version and byte order; `header` then holds whatever was there.
bool read_header(int fd, penstock_session_header& header);

}  // namespace penstock
