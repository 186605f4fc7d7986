// Runs a program for `profile run`, with the terminal and the descriptors of this process. Passes on the
// usual signals that this process gets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// Runs a program, waits for its end, and returns its exit code, or 128 + signal if a signal killed it.
// `program` is its path, and `argv` has its arguments, of which the first is the program's name. `on_end` is
// called after the program has ended and before its pid can be given to another process.
//
// SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM and SIGWINCH are forwarded to the program if
// another process sent them to this process. Signals from the terminal reach the program anyway and are not
// forwarded. Not thread-safe.
Result<int> run_watched(const std::string& program, const std::vector<std::string>& argv,
                        const std::vector<std::string>& environment,
                        const std::function<void(uint32_t pid)>& on_end);

}  // namespace penstock
