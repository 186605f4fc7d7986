// Wrappers of read(), write() and similar calls. These calls work at the descriptor's position or at an
// offset, in one part or several. Their fortified variants and copies between two descriptors are here too.
// Threads, locks, memory and signals: the rules of wrap.hpp.
#include "profiling/interpose/hooks/wrap_transfers.hpp"

#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

// libc exports some functions under a second name, such as __read(). Libraries of other projects call these.
PENSTOCK_WRAP_TWINS(ssize_t, read, __read, (int fd, void* out, size_t bytes),
                    transfer_at_position<PENSTOCK_CALL_READ>(fd, [&] { return real(fd, out, bytes); }))
PENSTOCK_WRAP(ssize_t, __read_chk, (int fd, void* out, size_t bytes, size_t room)) {
  return transfer_at_position<PENSTOCK_CALL_READ>(fd, [&] { return real___read_chk(fd, out, bytes, room); });
}
PENSTOCK_WRAP(ssize_t, readv, (int fd, const iovec* parts, int count)) {
  return transfer_at_position<PENSTOCK_CALL_READ>(fd, [&] { return real_readv(fd, parts, count); });
}
PENSTOCK_WRAP_TWINS(ssize_t, write, __write, (int fd, const void* data, size_t bytes),
                    transfer_at_position<PENSTOCK_CALL_WRITE>(fd, [&] { return real(fd, data, bytes); }))
PENSTOCK_WRAP(ssize_t, writev, (int fd, const iovec* parts, int count)) {
  return transfer_at_position<PENSTOCK_CALL_WRITE>(fd, [&] { return real_writev(fd, parts, count); });
}

PENSTOCK_WRAP_TWINS(ssize_t, pread, pread64, (int fd, void* out, size_t bytes, off64_t offset),
                    transfer_at<PENSTOCK_CALL_READ>(fd, offset, [&] { return real(fd, out, bytes, offset); }))
PENSTOCK_WRAP(ssize_t, __pread64, (int fd, void* out, size_t bytes, off64_t offset)) {
  return transfer_at<PENSTOCK_CALL_READ>(fd, offset, [&] { return real___pread64(fd, out, bytes, offset); });
}
PENSTOCK_WRAP_TWINS(ssize_t, __pread_chk, __pread64_chk,
                    (int fd, void* out, size_t bytes, off64_t offset, size_t room),
                    transfer_at<PENSTOCK_CALL_READ>(fd, offset,
                                                    [&] { return real(fd, out, bytes, offset, room); }))
PENSTOCK_WRAP_TWINS(ssize_t, preadv, preadv64, (int fd, const iovec* parts, int count, off64_t offset),
                    transfer_at<PENSTOCK_CALL_READ>(fd, offset,
                                                    [&] { return real(fd, parts, count, offset); }))
PENSTOCK_WRAP_TWINS(ssize_t, preadv2, preadv64v2,
                    (int fd, const iovec* parts, int count, off64_t offset, int flags),
                    transfer_at_if_set<PENSTOCK_CALL_READ>(fd, offset, [&] {
                      return real(fd, parts, count, offset, flags);
                    }))
PENSTOCK_WRAP_TWINS(ssize_t, pwrite, pwrite64, (int fd, const void* data, size_t bytes, off64_t offset),
                    transfer_at<PENSTOCK_CALL_WRITE>(fd, offset,
                                                     [&] { return real(fd, data, bytes, offset); }))
PENSTOCK_WRAP(ssize_t, __pwrite64, (int fd, const void* data, size_t bytes, off64_t offset)) {
  return transfer_at<PENSTOCK_CALL_WRITE>(fd, offset,
                                          [&] { return real___pwrite64(fd, data, bytes, offset); });
}
PENSTOCK_WRAP_TWINS(ssize_t, pwritev, pwritev64, (int fd, const iovec* parts, int count, off64_t offset),
                    transfer_at<PENSTOCK_CALL_WRITE>(fd, offset,
                                                     [&] { return real(fd, parts, count, offset); }))
PENSTOCK_WRAP_TWINS(ssize_t, pwritev2, pwritev64v2,
                    (int fd, const iovec* parts, int count, off64_t offset, int flags),
                    transfer_at_if_set<PENSTOCK_CALL_WRITE>(fd, offset, [&] {
                      return real(fd, parts, count, offset, flags);
                    }))

PENSTOCK_WRAP_TWINS(ssize_t, sendfile, sendfile64, (int out, int in, off64_t* offset, size_t bytes),
                    copy_between(in, offset, out, nullptr, true,
                                 [&] { return real(out, in, offset, bytes); }))
PENSTOCK_WRAP(ssize_t, copy_file_range,
              (int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes, unsigned flags)) {
  return copy_between(in, in_at, out, out_at, true,
                      [&] { return real_copy_file_range(in, in_at, out, out_at, bytes, flags); });
}
PENSTOCK_WRAP(ssize_t, splice,
              (int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes, unsigned flags)) {
  return copy_between(in, in_at, out, out_at, false,
                      [&] { return real_splice(in, in_at, out, out_at, bytes, flags); });
}
