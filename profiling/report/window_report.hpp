// The windows of a session (session_windows.hpp), as a table and as lines of JSON.
#pragma once

#include <string>
#include <vector>

#include "profiling/report/session_text.hpp"
#include "profiling/session/session_windows.hpp"

namespace penstock {

Rows window_rows(const std::vector<SessionWindow>& windows, size_t most, const Output& output);
// Appends one line of JSON for a window.
void append_window_json(std::string& out, const SessionWindow& window);

}  // namespace penstock
