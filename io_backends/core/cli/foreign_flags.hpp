// Knows flags of fio, IOR, elbencho and mdtest that Penstock spells in another way.
#pragma once

#include <string>
#include <string_view>

#include "io_backends/core/cli/command.hpp"

namespace penstock {

// Returns what to write in place of the flag `word` of another tool: "fio's --rw is --order ...". `word` is
// as the user typed it, such as "--rw=read" or "-t". Returns "" if `command` has nothing that does the same.
std::string foreign_flag_advice(const CommandInfo& command, std::string_view word);

}  // namespace penstock
