// Writes a session as one self-contained HTML page.
#pragma once

#include <string>

#include "io_backends/core/cli/command.hpp"
#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"

namespace penstock {

// Replaces an existing file. The page is written whole or not at all.
Result<void> write_session_page(const Session& session, const FileSums& sums, const SessionFilter& filter,
                                const Output& output, const std::string& file);

}  // namespace penstock
