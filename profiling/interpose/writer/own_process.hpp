// What the kernel says of this process. To read it is I/O of our own, which the kernel counts as well: it is
// added to File::own_read and File::read_to_begin. For who holds file_lock, or where nobody else records yet.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiling/session_abi.h"

namespace penstock::interpose {

// Reads a file of /proc, up to so many bytes, and ends it with nothing; the bytes read, 0 where it cannot be
// read.
std::size_t read_text(const char* path, char* to, std::size_t room) noexcept;
// What it has moved and asked for since it began, with what this look at it takes but for its own bytes.
// False: the kernel does not say.
bool read_kernel_io(penstock_kernel_io& io) noexcept;
// When it began, in the kernel's ticks since it was started (field 22 of /proc/self/stat); 0: not known.
std::uint64_t process_start() noexcept;

}  // namespace penstock::interpose
