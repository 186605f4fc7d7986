// Whole reads from a descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "io_backends/files/direct_io.hpp"
#include "io_backends/files/posix_root.hpp"

namespace penstock {

// pread until `out` is full or the file ends.
FullIo pread_full(int fd, std::uint64_t offset, std::span<std::byte> out);

// The same from a descriptor with O_DIRECT, for any offset, length and memory: one call where `offset` and
// `out` are aligned as the file wants it (the unaligned end goes through a buffer), else through a buffer of
// 1 MiB that each thread keeps.
FullIo pread_direct(int fd, const DirectAlignment& wanted, std::uint64_t offset, std::span<std::byte> out);

// Either, as the descriptor was opened.
inline FullIo pread_whole(int fd, const std::optional<DirectAlignment>& direct, std::uint64_t offset,
                          std::span<std::byte> out) {
  return direct ? pread_direct(fd, *direct, offset, out) : pread_full(fd, offset, out);
}

}  // namespace penstock
