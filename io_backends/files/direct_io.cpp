#include "io_backends/files/direct_io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace penstock {
namespace {

constexpr size_t kBounceBytes = 1U << 20U;

// The aligned buffer of the current thread. Its first use allocates it, and it exists until the thread ends.
Buffer& thread_buffer(size_t at_least) {
  thread_local Buffer buffer(kBounceBytes);
  buffer.grow(at_least);
  return buffer;
}

// Reads by one system call; the start of `out` and `offset` must be aligned. Whole blocks go directly to
// `out`. The rest of `out` gets its bytes through this thread's buffer. Returns the number of bytes, or -1.
// If the number is less than out.size() and not a multiple of `block`, the file has ended there.
ssize_t read_aligned(int fd, size_t block, uint64_t offset, std::span<std::byte> out) {
  const size_t whole_bytes = out.size() / block * block;
  struct iovec parts[2] = {{out.data(), whole_bytes}, {thread_buffer(block).data(), block}};
  const int first_part = whole_bytes == 0 ? 1 : 0;
  const int count = whole_bytes == out.size() ? 1 : 2 - first_part;
  const ssize_t moved = ::preadv(fd, parts + first_part, count, off_t(offset));
  if (moved <= 0) return moved;
  const size_t got = std::min(size_t(moved), out.size());
  if (got > whole_bytes)
    std::memcpy(out.data() + whole_bytes, thread_buffer(block).data(), got - whole_bytes);
  return ssize_t(got);
}

ssize_t read_bounced(int fd, size_t block, uint64_t offset, std::span<std::byte> out) {
  const size_t skip_bytes = offset % block;
  Buffer& buffer = thread_buffer(2 * block);
  const size_t usable_bytes = buffer.capacity() / block * block;
  const size_t wanted = std::min(usable_bytes, skip_bytes + out.size());
  const ssize_t moved = ::pread(fd, buffer.data(), round_up(wanted, block), off_t(offset - skip_bytes));
  if (moved < 0) return moved;
  if (size_t(moved) <= skip_bytes) return 0;
  const size_t got = std::min({size_t(moved) - skip_bytes, out.size(), wanted - skip_bytes});
  std::memcpy(out.data(), buffer.data() + skip_bytes, got);
  return ssize_t(got);
}

}  // namespace

std::optional<DirectAlignment> direct_alignment(int fd) {
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    if (status.stx_dio_offset_align == 0) return std::nullopt;
    return DirectAlignment{std::bit_ceil(std::max(status.stx_dio_mem_align, 1U)),
                           std::bit_ceil(status.stx_dio_offset_align)};
  }
#else
  static_cast<void>(fd);
#endif
  return DirectAlignment{};
}

Error no_direct_io(std::string_view file) {
  return make_error(Errc::unsupported,
                    "the file system of '" + std::string(file) +
                        "' does not support direct I/O; leave out direct=1, or add fallback=buffered");
}

bool lacks_direct_io(const std::filesystem::path& root) {
  std::error_code ignored;
  std::filesystem::path folder = root;
  while (!std::filesystem::is_directory(folder, ignored) && folder.has_relative_path())
    folder = folder.parent_path();
  const auto lacks = [](const Fd& file) { return file ? !direct_alignment(file.get()) : errno == EINVAL; };
  const Fd nameless_file(::openat(AT_FDCWD, folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600));
  if (nameless_file || errno == EINVAL) return lacks(nameless_file);
  // If no new file can be made in the folder, its existing files are tried, but only among its first
  // kMaxEntries entries. They are opened with O_NONBLOCK, because the open of a FIFO would block.
  constexpr int kMaxEntries = 1000;
  constexpr auto kOptions = std::filesystem::directory_options::skip_permission_denied;
  std::filesystem::recursive_directory_iterator entry(folder, kOptions, ignored);
  for (int i = 0; i < kMaxEntries && !ignored && entry != std::filesystem::end(entry);
       ++i, entry.increment(ignored)) {
    std::error_code no_file;
    if (!entry->is_regular_file(no_file)) continue;
    const Fd file(::openat(AT_FDCWD, entry->path().c_str(), O_RDONLY | O_DIRECT | O_NONBLOCK | O_CLOEXEC));
    if (file || errno == EINVAL) return lacks(file);
  }
  return false;
}

void clear_o_direct(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_DIRECT) != 0) ::fcntl(fd, F_SETFL, flags & ~O_DIRECT);
}

FullIo pread_direct(int fd, const DirectAlignment& alignment, uint64_t offset, std::span<std::byte> out) {
  return full_io(out.size(), [&](size_t done) {
    const std::span<std::byte> rest = out.subspan(done);
    return is_aligned(alignment, offset + done, rest.data())
               ? read_aligned(fd, alignment.offset, offset + done, rest)
               : read_bounced(fd, alignment.offset, offset + done, rest);
  });
}

}  // namespace penstock
