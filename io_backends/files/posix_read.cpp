#include "io_backends/files/posix_read.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>

#include "io_backends/backend/buffer.hpp"

namespace penstock {
namespace {

constexpr std::size_t kBounceBytes = 1U << 20U;

Buffer& bounce(std::size_t at_least) {
  thread_local Buffer buffer(kBounceBytes);
  buffer.grow(at_least);
  return buffer;
}

// `out` and `offset` are aligned. A result that is no multiple of the alignment means that the file ended.
ssize_t read_aligned(int fd, std::size_t block, std::uint64_t offset, std::span<std::byte> out) {
  const std::size_t bulk = out.size() / block * block;
  struct iovec parts[2] = {{out.data(), bulk}, {bounce(block).data(), block}};
  const int first = bulk == 0 ? 1 : 0;
  const int count = bulk == out.size() ? 1 : 2 - first;
  const ssize_t moved = ::preadv(fd, parts + first, count, static_cast<off_t>(offset));
  if (moved <= 0) return moved;
  const std::size_t got = std::min(static_cast<std::size_t>(moved), out.size());
  if (got > bulk) std::memcpy(out.data() + bulk, bounce(block).data(), got - bulk);
  return static_cast<ssize_t>(got);
}

ssize_t read_bounced(int fd, std::size_t block, std::uint64_t offset, std::span<std::byte> out) {
  const std::size_t ahead = offset % block;
  Buffer& bounced = bounce(2 * block);
  const std::size_t room = bounced.capacity() / block * block;
  const std::size_t wanted = std::min(room, ahead + out.size());
  const ssize_t moved =
      ::pread(fd, bounced.data(), round_up(wanted, block), static_cast<off_t>(offset - ahead));
  if (moved < 0) return moved;
  if (static_cast<std::size_t>(moved) <= ahead) return 0;
  const std::size_t got = std::min({static_cast<std::size_t>(moved) - ahead, out.size(), wanted - ahead});
  std::memcpy(out.data(), bounced.data() + ahead, got);
  return static_cast<ssize_t>(got);
}

}  // namespace

FullIo pread_full(int fd, std::uint64_t offset, std::span<std::byte> out) {
  return full_io(out.size(), [&](std::size_t done) {
    return ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
  });
}

FullIo pread_direct(int fd, const DirectAlignment& wanted, std::uint64_t offset, std::span<std::byte> out) {
  return full_io(out.size(), [&](std::size_t done) {
    const std::span<std::byte> rest = out.subspan(done);
    return aligned(wanted, offset + done, rest.data()) ? read_aligned(fd, wanted.offset, offset + done, rest)
                                                       : read_bounced(fd, wanted.offset, offset + done, rest);
  });
}

}  // namespace penstock
