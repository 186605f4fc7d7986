// Reads the kernel's I/O counters of this process. The kernel also counts the bytes that are read here: they
// are added to File::own_read_bytes and File::begin_read_bytes.
//
// Callers: the holder of file_lock, or the only thread that records. In end_session() a handler may call this
// without the lock; then those two numbers may be wrong, but nothing else.
// Memory: direct system calls and buffers on the stack, no heap. strtoull() and strstr() take
// no lock and allocate nothing, so a handler may call this. Reading /proc never blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiling/session_abi.h"

namespace penstock::interpose {

// Reads at most `room` bytes of a file in /proc; adds no NUL. Returns the number of bytes, 0 if the file
// cannot be read.
size_t read_text(const char* path, char* to, size_t room) noexcept;
// Reads the I/O of this process since it started. The result includes the system calls of this reading, but
// not its bytes. False if the kernel does not provide these counters.
bool read_kernel_io(penstock_kernel_io& io) noexcept;
// When this process began, in the kernel's ticks since boot (field 22 of /proc/self/stat). 0 if that is not
// known.
uint64_t process_start() noexcept;

}  // namespace penstock::interpose
