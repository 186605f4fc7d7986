// The processes that a sweep starts: runs, and the tools of Slurm.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

// Runs argv[0] (looked for in PATH) with the rest as its words, nothing to read, and all that it prints going
// to the file `log`; waits, and returns its exit code (128 + signal if one killed it, 127 where it cannot be
// run, with the reason in `log`). It does not outlive this process: SIGTERM tells it to end. `stop_signal` as
// in wait_for_child(). One thread.
Result<int> run_child(std::span<const std::string> argv, const std::filesystem::path& log, int stop_signal);

struct ToolAnswer {
  int exit_code = 0;
  std::string out;  // standard output, without the newline at its end
  std::string err;
};

// The same for a program that answers soon.
Result<ToolAnswer> ask_tool(std::span<const std::string> argv);

// The file in PATH, or "" where there is none.
std::string program_in_path(std::string_view name);

}  // namespace penstock
