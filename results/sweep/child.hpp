// Starts the processes of a sweep: its runs, and the tools of Slurm. Only one thread at a time may call these
// functions.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

// Runs the program argv[0] (found in PATH) with the other arguments, waits for it, and returns its exit code.
// If a signal killed it, the result is 128 + signal. If the program cannot be run, the result is 127, and
// `log` has the reason. The program's standard input is empty, and all that it prints is appended to the file
// `log`.
// If this process dies, the program gets SIGTERM. If this process is asked to stop, the program gets
// `stop_signal` (see wait_for_child()).
Result<int> run_child(std::span<const std::string> argv, const std::filesystem::path& log, int stop_signal);

struct ToolOutput {
  int exit_code = 0;
  std::string out;  // standard output, without newlines at its end
  std::string err;
};

// Runs a program that is expected to end soon, and returns its exit code and what it printed.
Result<ToolOutput> run_tool(std::span<const std::string> argv);

// The path of the first executable file of this name in PATH; "" if there is none.
std::string program_in_path(std::string_view name);

}  // namespace penstock
