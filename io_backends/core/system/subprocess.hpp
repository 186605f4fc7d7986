// Running a program and waiting for it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <span>
#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

// Runs argv[0] with the rest as its words, waits, and returns its exit code (128 + signal if one killed it).
// When this process is asked to stop meanwhile (interrupt.hpp), the child is told by the same signal and
// still waited for. One thread.
Result<int> run_program(std::span<const std::string> argv, bool discard_stdout = false);

// Waits for a child of this process and returns its exit code as run_program() does; `name` is for messages.
// When this process is asked to stop meanwhile, the child gets `stop_signal` (0: the signal that came;
// kNotSignalled: none, since what it does is to be done in any case) and is still waited for. One thread.
inline constexpr int kNotSignalled = -1;
Result<int> wait_for_child(pid_t child, const std::string& name, int stop_signal = 0);

// The running program's own file.
Result<std::filesystem::path> this_program();

}  // namespace penstock
