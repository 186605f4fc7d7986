// A session as JSON lines: what `penstock profile report --json` prints (docs/session_format.md). Written by
// hand, since there may be millions of lines: nothing but the text of one line is ever made of a file.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "profiling/session/roll_up.hpp"
#include "profiling/session/session_summary.hpp"

namespace penstock {

// Quoted; bytes that are no UTF-8 become U+FFFD.
void append_json_text(std::string& out, std::string_view text);

void append_session_json(std::string& out, const Session& session, const SessionSummary& summary);
void append_file_json(std::string& out, const FileSum& file);
void append_process_json(std::string& out, const ProcessSum& process);
// `kind`: "mount" or "directory".
void append_roll_up_json(std::string& out, std::string_view kind, const RollUp& row);

// A line for every wanted file, in the order of FileSums, made by several threads.
Result<void> write_files_json(const FileSums& sums, const SessionFilter& filter, std::FILE* out);

}  // namespace penstock
