// Writes a session as one self-contained HTML page.
#pragma once

#include <string>

#include "io_backends/core/cli/command.hpp"
#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"

namespace penstock {

// Writes the page to a file, which replaces an existing one. On an error the existing file is kept, and no
// half-written page is left.
Result<void> write_session_page(const Session& session, const FileSums& sums, const SessionFilter& filter,
                                Output output, const std::string& file);

}  // namespace penstock
