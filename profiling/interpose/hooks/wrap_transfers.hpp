// Functions that wrappers use for calls that read and write by descriptors. Each function gets the program's
// call as `call`, makes it and counts it. The rules of wrap.hpp hold here.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include "profiling/interpose/hooks/wrap.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

// Finds the offset of a write with O_APPEND. Called after the write, when the descriptor's position is the
// end of the written bytes.
inline void find_append_offset(int fd, Description& description, ssize_t bytes, int64_t& offset) noexcept {
  const long end_position = system_call(SYS_lseek, fd, 0, SEEK_CUR);
  if (end_position >= bytes) {
    offset = end_position - bytes;
    description.position.store(offset, std::memory_order_relaxed);
  }
}

// Makes and counts a read or a write at the descriptor's position.
template <penstock_call kCall>
ssize_t transfer_at_position(int fd, auto call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  int64_t offset = 0;
  Description* description = position_before(*log, fd, offset);
  const uint64_t begin = ticks();
  const ssize_t bytes = call();
  const uint64_t end = ticks();
  if constexpr (kCall == PENSTOCK_CALL_WRITE) {
    if (description != nullptr && description->appends && bytes > 0) [[unlikely]] {
      find_append_offset(fd, *description, bytes, offset);
    }
  }
  count_transfer<kCall>(*log, fd, description, offset, bytes, begin, end);
  return bytes;
}

// Makes and counts a read or a write at the given offset.
template <penstock_call kCall>
ssize_t transfer_at(int fd, int64_t offset, auto call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  const uint64_t begin = ticks();
  const ssize_t bytes = call();
  const uint64_t end = ticks();
  count_transfer<kCall>(*log, fd, nullptr, offset, bytes, begin, end);
  return bytes;
}

// Makes and counts preadv2() or pwritev2(). The offset -1 means: at the descriptor's position.
template <penstock_call kCall>
ssize_t transfer_at_if_set(int fd, int64_t offset, auto call) noexcept {
  if (offset != -1) {
    return transfer_at<kCall>(fd, offset, call);
  }
  return transfer_at_position<kCall>(fd, call);
}

inline bool is_file(const Description* description) noexcept {
  return description != nullptr && description->file != 0 && description->kind == PENSTOCK_REGULAR;
}

// Makes and counts a copy from one descriptor to another within the kernel, such as sendfile(). `in_at` and
// `out_at` point to offsets, which the kernel advances; null means that the call uses the position of that
// descriptor. `kernel_counts` says whether the kernel includes the bytes in rchar and wchar.
ssize_t copy_between(int in, const off64_t* in_at, int out, const off64_t* out_at, bool kernel_counts,
                     auto call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  int64_t in_offset = 0;
  int64_t out_offset = 0;
  Description* source = position_before(*log, in, in_offset);
  Description* destination = position_before(*log, out, out_offset);
  const uint64_t begin = ticks();
  const ssize_t bytes = call();
  const uint64_t end = ticks();
  if (bytes < 0) {
    count(*log, in, {.call = PENSTOCK_CALL_READ, .failed = errno, .begin = begin, .end = end});
    return bytes;
  }
  // The program's pointers can be read safely, because the kernel has used them in the call. It has advanced
  // the offsets.
  in_offset = in_at != nullptr ? *in_at - bytes : in_offset;
  out_offset = out_at != nullptr ? *out_at - bytes : out_offset;
  if (kernel_counts) {
    add_kernel_read(*log, bytes);
    add_kernel_written(*log, bytes);
  } else {
    log->totals->spliced += uint64_t(bytes);
  }
  if (source != nullptr && in_at == nullptr) {
    source->advance(bytes);
  }
  if (destination != nullptr && out_at == nullptr) {
    destination->advance(bytes);
  }
  // The time of the call must be counted only once. If both descriptors are files, each file gets half of the
  // time. If one of them is a pipe or a socket, whose operations are not counted, the other one gets all of
  // the time.
  const bool both_are_files = is_file(source) && is_file(destination);
  const uint64_t middle_ticks = begin + (end - begin) / 2;
  const uint64_t read_end = both_are_files ? middle_ticks : end;
  const uint64_t write_begin = both_are_files ? middle_ticks : begin;
  count(*log, in,
        {.call = PENSTOCK_CALL_READ, .offset = in_offset, .length = bytes, .begin = begin, .end = read_end});
  count(
      *log, out,
      {.call = PENSTOCK_CALL_WRITE, .offset = out_offset, .length = bytes, .begin = write_begin, .end = end});
  return bytes;
}

}  // namespace penstock::interpose
