// Writes an object into a folder of the operating system. Readers see all of it or nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/sharded_counter.hpp"
#include "io_backends/files/direct_io.hpp"
#include "io_backends/files/posix_root.hpp"

namespace penstock {

// What the writers of one back end share. Any thread.
struct PosixWriting {
  PosixRoot& root;
  MovedCounter& moved;
  DirectMode& direct;  // where offset, length and memory are aligned
  // Whether to try nameless files (O_TMPFILE), of which even SIGKILL leaves nothing. Cleared for good when
  // the file system has none. Then an object has a temporary name until it is published.
  std::atomic<bool> nameless{true};
  // Whether to link a nameless file by its descriptor alone. Cleared for good where the kernel needs /proc.
  std::atomic<bool> link_by_descriptor{true};
};

// A Writer for `name`. Reserves `bytes_hint` bytes from 1 MiB on (not in memory), which keeps large files in
// one piece. With direct I/O, appended bytes are copied and written in aligned blocks of 1 MiB. An append of
// 1 MiB and more is written without a copy, if its memory is aligned and it starts at a multiple of 4 KiB.
Result<std::unique_ptr<Writer>> create_posix_object(PosixWriting& writing, std::string_view name,
                                                    std::uint64_t bytes_hint);

}  // namespace penstock
