// Direct reads, which bypass the page cache (O_DIRECT). Memory, offset and length of a direct read must be
// aligned. Unaligned reads go through a buffer.
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

// The alignment that direct reads from a file need: of the memory, and of the offset in the file. Both are in
// bytes and powers of two. The length of a read must be a multiple of `offset`, too. kBufferAlignment is safe
// if the file's own alignment is unknown.
struct alignas(uint64_t) DirectAlignment {  // aligned, so that an atomic can load both members at once
  uint32_t memory = kBufferAlignment;
  uint32_t offset = kBufferAlignment;
};

// Asks the file system for the alignment (statx with STATX_DIOALIGN, Linux 6.1). Returns kBufferAlignment if
// the file system does not report it, and no value if the file has no direct I/O.
std::optional<DirectAlignment> direct_alignment(int fd);

// Whether the files of a back end are opened with O_DIRECT. Once direct I/O has been turned off, it stays
// off. Any thread may call this class.
class DirectMode {
 public:
  DirectMode(bool on, bool may_turn_off) : may_turn_off_(may_turn_off), on_(on) {}
  bool on() const { return on_.load(std::memory_order_acquire); }
  // Whether turn_off() may be called: the option fallback=buffered allows it. turn_off() is called when the
  // file system has no direct I/O, and then all later opens use the page cache.
  bool may_turn_off() const { return may_turn_off_; }
  void turn_off() {
    turned_off_.store(true, std::memory_order_relaxed);
    // A thread that sees on() == false also sees turned_off() == true, because turned_off_ is set first and
    // on_ is stored with release.
    on_.store(false, std::memory_order_release);
  }
  bool turned_off() const { return turned_off_.load(std::memory_order_relaxed); }

 private:
  const bool may_turn_off_;
  std::atomic<bool> on_;
  std::atomic<bool> turned_off_{false};
};

// The error for a file whose file system has no direct I/O.
Error no_direct_io(std::string_view file);

// Whether the file system of the root certainly has no direct I/O. If the root does not exist, its nearest
// existing parent folder is checked. The check makes a file without a name, so a crash leaves nothing. If it
// cannot make one, it opens existing files in the folder.
bool lacks_direct_io(const std::filesystem::path& root);

// Removes O_DIRECT from a descriptor.
void clear_o_direct(int fd);

// Reads from a descriptor with O_DIRECT; offset, length and memory need not be aligned. If `offset` and the
// start of `out` are aligned, one system call is usually enough, and only an unaligned end goes through a
// buffer. If they are not aligned, all bytes go through a buffer of 1 MiB that each thread keeps.
FullIo pread_direct(int fd, const DirectAlignment& alignment, uint64_t offset, std::span<std::byte> out);

// Whether a direct read may start at this offset and write to this memory.
inline bool is_aligned(const DirectAlignment& alignment, uint64_t offset, const std::byte* memory) {
  // NOLINTNEXTLINE(*-reinterpret-cast)
  return offset % alignment.offset == 0 && reinterpret_cast<uintptr_t>(memory) % alignment.memory == 0;
}

// `bytes` rounded up to a multiple of `block`.
constexpr uint64_t round_up(uint64_t bytes, uint64_t block) {
  return (bytes + block - 1) / block * block;
}

// The read that the system must do for an operation, extended to whole blocks: `padded_bytes` bytes from
// `offset` into `into`. The first `skip_bytes` of these bytes are not part of the operation.
struct AlignedRead {
  std::byte* into = nullptr;
  uint64_t offset = 0;
  size_t skip_bytes = 0;
  size_t padded_bytes = 0;
};

// Plans a read of `bytes` bytes from `offset`. The read goes directly to `destination` if `offset` and
// `destination` are aligned and `destination` has space for whole blocks. It may overwrite all of these
// blocks. Otherwise it goes to `bounce`, which grows as needed. A buffered read (`direct` is empty) always
// goes to `destination`.
inline AlignedRead plan_read(const std::optional<DirectAlignment>& direct, uint64_t offset, size_t bytes,
                             std::span<std::byte> destination, Buffer& bounce) {
  if (!direct) return {destination.data(), offset, 0, bytes};
  const auto skip_bytes = size_t(offset % direct->offset);
  const auto padded_bytes = size_t(round_up(skip_bytes + bytes, direct->offset));
  if (skip_bytes == 0 && padded_bytes <= destination.size() &&
      is_aligned(*direct, offset, destination.data()))
    return {destination.data(), offset, 0, padded_bytes};
  bounce.grow(padded_bytes);
  return {bounce.data(), offset - skip_bytes, skip_bytes, padded_bytes};
}

}  // namespace penstock
