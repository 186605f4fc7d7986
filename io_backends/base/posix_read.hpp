// Whole reads from a descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io_backends/base/posix_root.hpp"

namespace penstock {

// pread until `out` is full or the file ends.
FullIo pread_full(int fd, std::uint64_t offset, std::span<std::byte> out);

// The same from a descriptor with O_DIRECT, for any offset, length and memory: one call where `offset` and
// `out` are aligned to kBufferAlignment (the ragged end lands beside `out`), else through a buffer of 1 MiB
// that each thread keeps.
FullIo pread_direct(int fd, std::uint64_t offset, std::span<std::byte> out);

}  // namespace penstock
