// Information that the kernel has about the processes of this machine.
#pragma once

#include <cstdint>
#include <string>

#include "profiling/session_abi.h"

namespace penstock {

// Reads /proc/PID/io. If the file cannot be read, or lacks a number, the result is false.
bool read_kernel_io(uint32_t pid, penstock_kernel_io& io);
// The start time of a process in the kernel's ticks, from /proc/PID/stat; 0 if no such process exists.
uint64_t process_start(uint32_t pid);
// True if the process with this pid and start time still runs. False for a zombie (ended, but its parent has
// not waited for it).
bool process_runs(uint32_t pid, uint64_t start);
// True if the process maps a file of this name, in any folder. False also if the kernel does not tell.
bool maps_file(uint32_t pid, const std::string& name);
// The number of this process's PID namespace, as in session headers; 0 if it is not known.
uint32_t own_pid_namespace();
// The name of this machine in the form that session headers have (`host`).
std::string this_host();

}  // namespace penstock
