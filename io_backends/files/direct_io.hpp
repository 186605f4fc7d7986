// Reads that bypass the page cache (O_DIRECT): what the system wants of their memory, offsets and lengths,
// and where a read goes that is not so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/files/posix_root.hpp"

namespace penstock {

// In bytes, powers of two. Lengths are multiples of `offset`. kBufferAlignment is safe where the file's own
// alignment is unknown.
struct alignas(std::uint64_t) DirectAlignment {  // fit to be loaded in one piece
  std::uint32_t memory = kBufferAlignment;
  std::uint32_t offset = kBufferAlignment;
};

// What the file system says of this file (statx with STATX_DIOALIGN, Linux 6.1); kBufferAlignment where it
// says nothing; none where it says that the file cannot be read so.
std::optional<DirectAlignment> direct_alignment(int fd);

// Whether the files of a back end are opened with O_DIRECT. Any thread.
class DirectMode {
 public:
  DirectMode(bool on, bool may_leave) : may_leave_(may_leave), on_(on) {}
  bool on() const { return on_.load(std::memory_order_acquire); }
  // A file system turned out to have no direct I/O, and the page cache will do: for all from now on.
  bool may_leave() const { return may_leave_; }
  void leave() {
    left_.store(true, std::memory_order_relaxed);
    on_.store(false, std::memory_order_release);  // whoever sees this sees that it was left
  }
  bool left() const { return left_.load(std::memory_order_relaxed); }

 private:
  const bool may_leave_;
  std::atomic<bool> on_;
  std::atomic<bool> left_{false};
};

// What is said where that is none, or O_DIRECT is refused.
Error no_direct_io(std::string_view file);

// Whether the file system of the root says that it has no direct I/O; of the nearest folder above it where
// the root does not exist yet. A crash leaves nothing, since the file that it makes has no name.
bool lacks_direct_io(const std::filesystem::path& root);

// Takes O_DIRECT off a descriptor.
void leave_direct_io(int fd);

// From a descriptor with O_DIRECT, for any offset, length and memory: one call where `offset` and `out` are
// aligned as the file wants it (the unaligned end goes through a buffer), else through a buffer of 1 MiB that
// each thread keeps.
FullIo pread_direct(int fd, const DirectAlignment& wanted, std::uint64_t offset, std::span<std::byte> out);

// Whether a read of whole blocks may go there.
inline bool aligned(const DirectAlignment& wanted, std::uint64_t offset, const std::byte* memory) {
  // NOLINTNEXTLINE(*-reinterpret-cast)
  return offset % wanted.offset == 0 && reinterpret_cast<std::uintptr_t>(memory) % wanted.memory == 0;
}

// The next multiple of `block`, a power of two.
constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t block) {
  return (bytes + block - 1) / block * block;
}

// A read as it is put to the system, so that `bytes` bytes from `offset` come by it: `padded` bytes from
// `offset` go to `into`, the first `ahead` of them unwanted.
struct Aim {
  std::byte* into = nullptr;
  std::uint64_t offset = 0;
  std::size_t ahead = 0;
  std::size_t padded = 0;
};

// Straight to `room`, of which the first `bytes` bytes are wanted and all may be overwritten, or to `bounce`,
// grown as needed, where direct I/O cannot. Without a DirectAlignment: just so.
inline Aim aim(const std::optional<DirectAlignment>& direct, std::uint64_t offset, std::size_t bytes,
               std::span<std::byte> room, Buffer& bounce) {
  if (!direct) return {room.data(), offset, 0, bytes};
  const auto ahead = static_cast<std::size_t>(offset % direct->offset);
  const auto padded = static_cast<std::size_t>(round_up(ahead + bytes, direct->offset));
  if (ahead == 0 && padded <= room.size() && aligned(*direct, offset, room.data()))
    return {room.data(), offset, 0, padded};
  bounce.grow(padded);
  return {bounce.data(), offset - ahead, ahead, padded};
}

}  // namespace penstock
