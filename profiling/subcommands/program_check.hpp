// Whether a program can be watched: a library that is loaded before its own sees nothing of a static program,
// is refused by a privileged one, and has to be of its kind.
#pragma once

#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

// The program that a shell would run for `word`: itself where it has a slash, else the first executable one
// on PATH. not_found where there is none, permission_denied where it may not be executed.
Result<std::string> find_program(std::string_view word);

// invalid_argument with the reason and what to do about it where a preloaded library would see nothing;
// permission_denied for what the system cannot execute. Scripts are judged by their interpreter.
Result<void> check_watchable(const std::string& program);

}  // namespace penstock
