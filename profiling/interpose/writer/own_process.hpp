// Reads what the kernel counts of this process. Reading it is I/O of our own, which the kernel counts too: it
// is added to File::own_read and File::read_to_begin. For the holder of file_lock, or the only thread that
// records. (In end_session() a handler may call it without the lock; then those two numbers may be wrong,
// nothing else.) Direct system calls, buffers on the stack, no heap; strtoull() and strstr() only read. /proc
// never blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiling/session_abi.h"

namespace penstock::interpose {

// Reads at most `room` bytes of a file of /proc, without a NUL after them. Returns the bytes read, 0 if it
// cannot be read.
std::size_t read_text(const char* path, char* to, std::size_t room) noexcept;
// What the process has moved and asked for since it began. This reading's own calls are in it, but not its
// bytes. False: the kernel does not say.
bool read_kernel_io(penstock_kernel_io& io) noexcept;
// When the process began, in the kernel's ticks since boot (field 22 of /proc/self/stat); 0: not known.
std::uint64_t process_start() noexcept;

}  // namespace penstock::interpose
