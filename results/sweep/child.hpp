// Starts the processes of a sweep: its runs, and the tools of Slurm. Call these from one thread at a time.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

// Runs argv[0] (found in PATH) with the other arguments, waits for it, and returns its exit code. The exit
// code is 128 + signal if a signal killed it. It is 127 if the program cannot be run, and `log` then has the
// reason. The standard input of the program is empty, and all that it prints is appended to the file `log`.
// The program gets SIGTERM if this process dies. `stop_signal` is as in wait_for_child(): the signal that the
// child gets when this process is asked to stop.
Result<int> run_child(std::span<const std::string> argv, const std::filesystem::path& log, int stop_signal);

struct ToolOutput {
  int exit_code = 0;
  std::string out;  // standard output, without newlines at its end
  std::string err;
};

// Runs a program that ends soon, and returns what it printed.
Result<ToolOutput> run_tool(std::span<const std::string> argv);

// The path of the first executable file of this name in PATH; "" if there is none.
std::string program_in_path(std::string_view name);

}  // namespace penstock
