// Running a program as `profile run` does: in front of the same terminal, with the same descriptors, and with
// every signal that is meant for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// `program` is the file, `argv` its words, the first one included; `on_end` is called when it has ended and
// its number is still its own.
//
// Waits for its end and returns its exit code, 128 + signal where one killed it. Signals that somebody sends
// to this process meanwhile go to the program; those of a terminal reach it anyway, and are skipped. One
// thread.
Result<int> run_watched(const std::string& program, const std::vector<std::string>& argv,
                        const std::vector<std::string>& environment,
                        const std::function<void(std::uint32_t pid)>& on_end);

}  // namespace penstock
