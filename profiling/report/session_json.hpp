// Writes a session as JSON lines, for `penstock profile report --json` (docs/reference/session-format.md). The text is
// built directly, without JSON objects, because there may be millions of lines.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "profiling/session/roll_up.hpp"
#include "profiling/session/session_summary.hpp"

namespace penstock {

// Appends the text with quotes. Names that are not UTF-8 are escaped (utf8_name()).
void append_json_text(std::string& out, std::string_view text);

void append_session_json(std::string& out, const Session& session, const SessionSummary& summary);
void append_file_json(std::string& out, const FileSum& file);
void append_process_json(std::string& out, const ProcessSum& process);
// Appends one line for a mount or a folder. `kind`: "mount" or "directory".
void append_roll_up_json(std::string& out, std::string_view kind, const RollUp& row);

// Writes a line for every file that the filter wants and on which an operation succeeded, in the order of
// FileSums. Several threads make the lines.
Result<void> write_files_json(const FileSums& sums, const SessionFilter& filter, std::FILE* out);

}  // namespace penstock
