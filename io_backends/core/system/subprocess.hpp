// Runs a program and waits for it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <span>
#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

// Runs argv[0] with the other elements as its arguments, waits, and returns its exit code (128 + signal if a
// signal ended it). If this process is asked to stop meanwhile (interrupt.hpp), it sends the child the same
// signal and still waits. Only one thread at a time may call it.
Result<int> run_program(std::span<const std::string> argv, bool discard_stdout = false);

// wait_for_child() waits for a child of this process and returns its exit code (128 + signal if a signal
// ended it). Messages contain `name`. If this process is asked to stop meanwhile, it sends `stop_signal` to
// the child and still waits. With `stop_signal` 0 it sends the signal that arrived. With kNotSignalled it
// sends none, for a child that must finish its work. Only one thread at a time may call it.
inline constexpr int kNotSignalled = -1;
Result<int> wait_for_child(pid_t child, const std::string& name, int stop_signal = 0);

// For a program that may be started by run_program(): if it is, it gets SIGTERM when the process that called
// run_program() dies, even if that is killed. So it does not go on to use files that the dead process made.
// The main program calls it before it starts threads.
void end_with_parent();

// The path of the running program.
Result<std::filesystem::path> this_program();

}  // namespace penstock
