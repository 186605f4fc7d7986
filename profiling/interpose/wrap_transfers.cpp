// read, write and their kin: with a position of their own or the descriptor's, of one part or several,
// fortified, and those between two descriptors.
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "profiling/interpose/system.hpp"
#include "profiling/interpose/wrap.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are outside of any namespace, as what they stand in
                                      // for

namespace {

// Where an O_APPEND write went: the kernel set the position behind it.
void follow_append(int fd, Description& description, ssize_t bytes, std::int64_t& offset) noexcept {
  const long at = system_call(SYS_lseek, fd, 0, SEEK_CUR);
  if (at >= bytes) {
    offset = at - bytes;
    description.position.store(offset, std::memory_order_relaxed);
  }
}

template <typename Call>
ssize_t read_on(int fd, Call call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  std::int64_t offset = 0;
  Description* description = positioned(*log, fd, offset);
  const std::uint64_t begin = ticks();
  const ssize_t bytes = call();
  const std::uint64_t end = ticks();
  count_transfer<PENSTOCK_CALL_READ>(*log, fd, description, offset, bytes, begin, end);
  return bytes;
}

template <typename Call>
ssize_t write_on(int fd, Call call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  std::int64_t offset = 0;
  Description* description = positioned(*log, fd, offset);
  const std::uint64_t begin = ticks();
  const ssize_t bytes = call();
  const std::uint64_t end = ticks();
  if (description != nullptr && description->appends && bytes > 0) [[unlikely]] {
    follow_append(fd, *description, bytes, offset);
  }
  count_transfer<PENSTOCK_CALL_WRITE>(*log, fd, description, offset, bytes, begin, end);
  return bytes;
}

template <penstock_call kCall, typename Call>
ssize_t transfer_at(int fd, std::int64_t offset, Call call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  const std::uint64_t begin = ticks();
  const ssize_t bytes = call();
  const std::uint64_t end = ticks();
  count_transfer<kCall>(*log, fd, nullptr, offset, bytes, begin, end);
  return bytes;
}

// preadv2 and pwritev2 take -1 for the descriptor's position.
template <penstock_call kCall, typename Call>
ssize_t vector2(int fd, std::int64_t offset, Call call) noexcept {
  if (offset != -1) {
    return transfer_at<kCall>(fd, offset, call);
  }
  return kCall == PENSTOCK_CALL_READ ? read_on(fd, call) : write_on(fd, call);
}

}  // namespace

PENSTOCK_WRAP(ssize_t, read, (int fd, void* out, size_t bytes)) {
  return read_on(fd, [&] { return real_read(fd, out, bytes); });
}
PENSTOCK_WRAP(ssize_t, __read_chk, (int fd, void* out, size_t bytes, size_t room)) {
  return read_on(fd, [&] { return real___read_chk(fd, out, bytes, room); });
}
PENSTOCK_WRAP(ssize_t, readv, (int fd, const iovec* parts, int count)) {
  return read_on(fd, [&] { return real_readv(fd, parts, count); });
}
PENSTOCK_WRAP(ssize_t, write, (int fd, const void* data, size_t bytes)) {
  return write_on(fd, [&] { return real_write(fd, data, bytes); });
}
PENSTOCK_WRAP(ssize_t, writev, (int fd, const iovec* parts, int count)) {
  return write_on(fd, [&] { return real_writev(fd, parts, count); });
}

PENSTOCK_WRAP(ssize_t, pread, (int fd, void* out, size_t bytes, off64_t offset)) {
  return transfer_at<PENSTOCK_CALL_READ>(fd, offset, [&] { return real_pread(fd, out, bytes, offset); });
}
PENSTOCK_WRAP(ssize_t, pread64, (int fd, void* out, size_t bytes, off64_t offset)) {
  return transfer_at<PENSTOCK_CALL_READ>(fd, offset, [&] { return real_pread64(fd, out, bytes, offset); });
}
PENSTOCK_WRAP(ssize_t, __pread_chk, (int fd, void* out, size_t bytes, off64_t offset, size_t room)) {
  return transfer_at<PENSTOCK_CALL_READ>(fd, offset,
                                         [&] { return real___pread_chk(fd, out, bytes, offset, room); });
}
PENSTOCK_WRAP(ssize_t, __pread64_chk, (int fd, void* out, size_t bytes, off64_t offset, size_t room)) {
  return transfer_at<PENSTOCK_CALL_READ>(fd, offset,
                                         [&] { return real___pread64_chk(fd, out, bytes, offset, room); });
}
PENSTOCK_WRAP(ssize_t, preadv, (int fd, const iovec* parts, int count, off64_t offset)) {
  return transfer_at<PENSTOCK_CALL_READ>(fd, offset, [&] { return real_preadv(fd, parts, count, offset); });
}
PENSTOCK_WRAP(ssize_t, preadv64, (int fd, const iovec* parts, int count, off64_t offset)) {
  return transfer_at<PENSTOCK_CALL_READ>(fd, offset, [&] { return real_preadv64(fd, parts, count, offset); });
}
PENSTOCK_WRAP(ssize_t, preadv2, (int fd, const iovec* parts, int count, off64_t offset, int flags)) {
  return vector2<PENSTOCK_CALL_READ>(fd, offset,
                                     [&] { return real_preadv2(fd, parts, count, offset, flags); });
}
PENSTOCK_WRAP(ssize_t, preadv64v2, (int fd, const iovec* parts, int count, off64_t offset, int flags)) {
  return vector2<PENSTOCK_CALL_READ>(fd, offset,
                                     [&] { return real_preadv64v2(fd, parts, count, offset, flags); });
}
PENSTOCK_WRAP(ssize_t, pwrite, (int fd, const void* data, size_t bytes, off64_t offset)) {
  return transfer_at<PENSTOCK_CALL_WRITE>(fd, offset, [&] { return real_pwrite(fd, data, bytes, offset); });
}
PENSTOCK_WRAP(ssize_t, pwrite64, (int fd, const void* data, size_t bytes, off64_t offset)) {
  return transfer_at<PENSTOCK_CALL_WRITE>(fd, offset, [&] { return real_pwrite64(fd, data, bytes, offset); });
}
PENSTOCK_WRAP(ssize_t, pwritev, (int fd, const iovec* parts, int count, off64_t offset)) {
  return transfer_at<PENSTOCK_CALL_WRITE>(fd, offset, [&] { return real_pwritev(fd, parts, count, offset); });
}
PENSTOCK_WRAP(ssize_t, pwritev64, (int fd, const iovec* parts, int count, off64_t offset)) {
  return transfer_at<PENSTOCK_CALL_WRITE>(fd, offset,
                                          [&] { return real_pwritev64(fd, parts, count, offset); });
}
PENSTOCK_WRAP(ssize_t, pwritev2, (int fd, const iovec* parts, int count, off64_t offset, int flags)) {
  return vector2<PENSTOCK_CALL_WRITE>(fd, offset,
                                      [&] { return real_pwritev2(fd, parts, count, offset, flags); });
}
PENSTOCK_WRAP(ssize_t, pwritev64v2, (int fd, const iovec* parts, int count, off64_t offset, int flags)) {
  return vector2<PENSTOCK_CALL_WRITE>(fd, offset,
                                      [&] { return real_pwritev64v2(fd, parts, count, offset, flags); });
}

namespace {

// From one descriptor to another, within the kernel. `in_at` and `out_at` point to positions that the kernel
// moves, or are null for the descriptors' own.
template <typename Call>
ssize_t between(int in, const off64_t* in_at, int out, const off64_t* out_at, bool kernel_counts,
                Call call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  std::int64_t in_offset = 0;
  std::int64_t out_offset = 0;
  Description* from = positioned(*log, in, in_offset);
  Description* to = positioned(*log, out, out_offset);
  in_offset = in_at != nullptr ? *in_at : in_offset;
  out_offset = out_at != nullptr ? *out_at : out_offset;
  const std::uint64_t begin = ticks();
  const ssize_t bytes = call();
  const std::uint64_t end = ticks();
  if (bytes < 0) {
    count(*log, in, {.call = PENSTOCK_CALL_READ, .failed = errno, .begin = begin, .end = end});
    return bytes;
  }
  if (kernel_counts) {
    add_kernel_read(*log, bytes);
    add_kernel_written(*log, bytes);
  } else {
    log->totals->spliced += static_cast<std::uint64_t>(bytes);
  }
  if (from != nullptr && in_at == nullptr) {
    from->advance(bytes);
  }
  if (to != nullptr && out_at == nullptr) {
    to->advance(bytes);
  }
  count(*log, in,
        {.call = PENSTOCK_CALL_READ, .offset = in_offset, .length = bytes, .begin = begin, .end = end});
  count(*log, out,
        {.call = PENSTOCK_CALL_WRITE, .offset = out_offset, .length = bytes, .begin = begin, .end = end});
  return bytes;
}

}  // namespace

PENSTOCK_WRAP(ssize_t, sendfile, (int out, int in, off64_t* offset, size_t bytes)) {
  return between(in, offset, out, nullptr, true, [&] { return real_sendfile(out, in, offset, bytes); });
}
PENSTOCK_WRAP(ssize_t, sendfile64, (int out, int in, off64_t* offset, size_t bytes)) {
  return between(in, offset, out, nullptr, true, [&] { return real_sendfile64(out, in, offset, bytes); });
}
PENSTOCK_WRAP(ssize_t, copy_file_range,
              (int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes, unsigned flags)) {
  return between(in, in_at, out, out_at, true,
                 [&] { return real_copy_file_range(in, in_at, out, out_at, bytes, flags); });
}
PENSTOCK_WRAP(ssize_t, splice,
              (int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes, unsigned flags)) {
  return between(in, in_at, out, out_at, false,
                 [&] { return real_splice(in, in_at, out, out_at, bytes, flags); });
}
