// Running a program and waiting for it.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

struct SubprocessOptions {
  bool discard_stdout = false;
};

// Runs argv[0] with the rest as its words, waits, and returns its exit code (128 + signal if one killed it).
// When this process is asked to stop meanwhile (interrupt.hpp), the child is told by the same signal and
// still waited for. One thread.
Result<int> run_program(std::span<const std::string> argv, const SubprocessOptions& options = {});

// The running program's own file.
Result<std::filesystem::path> this_program();

}  // namespace penstock
