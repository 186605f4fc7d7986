// Reads the kernel's I/O counters of this process, and other files of /proc. The kernel also counts the bytes
// that are read here, so they are added to File::own_read_bytes and File::begin_read_bytes.
//
// Callers: the holder of file_lock, or the only thread that records. One exception: in end_session() a
// handler may call read_kernel_io() without the lock. In that case those two numbers may be wrong, but
// nothing else.
// Memory: direct system calls and buffers on the stack, no heap. A handler may call these functions:
// strtoull() and strstr() take no lock and allocate nothing, and reading /proc never blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiling/session_abi.h"

namespace penstock::interpose {

// Reads at most `room` bytes of a file in /proc, and adds no NUL. Returns the number of bytes that were read;
// 0 if the file cannot be read.
size_t read_text(const char* path, char* to, size_t room) noexcept;
// Reads the kernel's counters of the I/O that this process has made since it started. They already include
// some system calls of this function, but not the bytes that it reads. False if the kernel does not provide
// these counters.
bool read_kernel_io(penstock_kernel_io& io) noexcept;
// Which process this is, as the kernel tells it. A member is 0 if it is not known.
struct ProcessIdentity {
  uint64_t start = 0;       // when it began, in the kernel's ticks since boot (field 22 of /proc/self/stat)
  uint32_t kernel_pid = 0;  // its pid in the namespace of /proc (field 1)
  uint32_t pid_namespace = 0;  // inode of /proc/self/ns/pid
};
ProcessIdentity process_identity() noexcept;

}  // namespace penstock::interpose
