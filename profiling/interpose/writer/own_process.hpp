// Reads the kernel's I/O counters of this process. The kernel also counts the bytes that are read here: they
// are added to File::own_read and File::read_to_begin.
//
// Callers: the holder of file_lock, or the only thread that records. In end_session() a handler may call this
// without the lock; then those two numbers may be wrong, but nothing else.
// Memory: direct system calls and buffers on the stack, no heap. strtoull() and strstr() only read. /proc
// never blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiling/session_abi.h"

namespace penstock::interpose {

// Reads at most `room` bytes of a file in /proc; adds no NUL. Returns the number of bytes, 0 if the file
// cannot be read.
std::size_t read_text(const char* path, char* to, std::size_t room) noexcept;
// The process's I/O since it started. It includes the system calls of this reading, but not its bytes. False:
// the kernel does not provide it.
bool read_kernel_io(penstock_kernel_io& io) noexcept;
// When the process began, in the kernel's ticks since boot (field 22 of /proc/self/stat); 0: not known.
std::uint64_t process_start() noexcept;

}  // namespace penstock::interpose
