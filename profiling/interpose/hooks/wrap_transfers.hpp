// The code around calls that read and write by descriptors. `call` makes the program's call, which is then
// counted. It runs in wrappers, under the rules of wrap.hpp.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include "profiling/interpose/hooks/wrap.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

// Finds the offset of an O_APPEND write: the kernel has set the position to the end of the written bytes.
inline void follow_append(int fd, Description& description, ssize_t bytes, std::int64_t& offset) noexcept {
  const long at = system_call(SYS_lseek, fd, 0, SEEK_CUR);
  if (at >= bytes) {
    offset = at - bytes;
    description.position.store(offset, std::memory_order_relaxed);
  }
}

// A read or a write at the descriptor's position.
template <penstock_call kCall>
ssize_t transfer_at_position(int fd, auto call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  std::int64_t offset = 0;
  Description* description = position_before(*log, fd, offset);
  const std::uint64_t begin = ticks();
  const ssize_t bytes = call();
  const std::uint64_t end = ticks();
  if constexpr (kCall == PENSTOCK_CALL_WRITE) {
    if (description != nullptr && description->appends && bytes > 0) [[unlikely]] {
      follow_append(fd, *description, bytes, offset);
    }
  }
  count_transfer<kCall>(*log, fd, description, offset, bytes, begin, end);
  return bytes;
}

// A read or a write at an offset of its own.
template <penstock_call kCall>
ssize_t transfer_at(int fd, std::int64_t offset, auto call) noexcept {
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
template <penstock_call kCall>
ssize_t transfer_v2(int fd, std::int64_t offset, auto call) noexcept {
  if (offset != -1) {
    return transfer_at<kCall>(fd, offset, call);
  }
  return transfer_at_position<kCall>(fd, call);
}

inline bool is_file(const Description* description) noexcept {
  return description != nullptr && description->file != 0 && description->kind == PENSTOCK_REGULAR;
}

// A copy from one descriptor to another within the kernel, as by sendfile(). `in_at` and `out_at` point to
// offsets that the kernel advances. If one is null, the call uses that descriptor's position.
// `kernel_counts`: whether the kernel includes the bytes in rchar and wchar.
ssize_t copy_between(int in, const off64_t* in_at, int out, const off64_t* out_at, bool kernel_counts,
                     auto call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  std::int64_t in_offset = 0;
  std::int64_t out_offset = 0;
  Description* from = position_before(*log, in, in_offset);
  Description* to = position_before(*log, out, out_offset);
  const std::uint64_t begin = ticks();
  const ssize_t bytes = call();
  const std::uint64_t end = ticks();
  if (bytes < 0) {
    count(*log, in, {.call = PENSTOCK_CALL_READ, .failed = errno, .begin = begin, .end = end});
    return bytes;
  }
  // The kernel has advanced these offsets by now, so the program's pointers are valid and may be read.
  in_offset = in_at != nullptr ? *in_at - bytes : in_offset;
  out_offset = out_at != nullptr ? *out_at - bytes : out_offset;
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
  // The time must be counted only once. Between two files, each gets half of it. If the other end is a pipe
  // or a socket, whose operations are not counted, the file gets all of it.
  const bool two_files = is_file(from) && is_file(to);
  const std::uint64_t middle = begin + (end - begin) / 2;
  const std::uint64_t read_end = two_files ? middle : end;
  const std::uint64_t write_begin = two_files ? middle : begin;
  count(*log, in,
        {.call = PENSTOCK_CALL_READ, .offset = in_offset, .length = bytes, .begin = begin, .end = read_end});
  count(
      *log, out,
      {.call = PENSTOCK_CALL_WRITE, .offset = out_offset, .length = bytes, .begin = write_begin, .end = end});
  return bytes;
}

}  // namespace penstock::interpose
