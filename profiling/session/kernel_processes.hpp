// What the kernel says of the processes of this machine.
#pragma once

#include <cstdint>
#include <string>

#include "profiling/session_abi.h"

namespace penstock {

// What /proc/PID/io says; all zero and false where it says nothing.
bool read_kernel_io(std::uint32_t pid, penstock_kernel_io& io);
// The moment at which a process began, in the kernel's own ticks (/proc/PID/stat); 0 where there is none.
std::uint64_t process_start(std::uint32_t pid);
// Whether the process that began then still runs: it has not ended, waited for or not.
bool process_runs(std::uint32_t pid, std::uint64_t start);
// What this machine calls itself, as headers of sessions have it.
std::string this_host();

}  // namespace penstock
