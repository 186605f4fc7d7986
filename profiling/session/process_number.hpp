// Parses an argument that is a process id or a session. A word of digits only is a process id; a user writes
// a folder with such a name as "./4711".
#pragma once

#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

bool is_process_number(std::string_view word);
// Parses a process id. Error: invalid_argument if the word has other characters than digits, is 0, or is too
// large.
Result<int> process_number(std::string_view word);

}  // namespace penstock
