// Where a process or a session may be named: a word of digits alone is a process's number (a folder of such a
// name is written as "./4711").
#pragma once

#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

bool is_process_number(std::string_view word);
// invalid_argument for what is no process's: other characters, 0, more than any has.
Result<int> process_number(std::string_view word);

}  // namespace penstock
