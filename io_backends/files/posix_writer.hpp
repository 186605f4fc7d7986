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

// The common state of all writers of one back end. Any thread.
struct PosixWriting {
  PosixRoot& root;
  MovedCounter& moved;
  DirectMode& direct;  // whether writes use O_DIRECT; only aligned blocks do
  // Whether to use nameless files (O_TMPFILE), which disappear even after SIGKILL. Set to false for ever if
  // the file system has none. Then an object has a temporary name until it is published.
  std::atomic<bool> nameless{true};
  // Whether a nameless file can be linked by its descriptor. Set to false for ever if the kernel needs its
  // path in /proc.
  std::atomic<bool> link_by_descriptor{true};
};

// Makes a Writer for `name`. If `bytes_hint` is at least 1 MiB, it reserves that space on the disk (not on
// tmpfs), so that a large file is contiguous. With direct I/O, appended bytes are copied and written in
// aligned blocks of 1 MiB. An append of at least 1 MiB is written without a copy if its memory is aligned and
// it starts at a multiple of 4 KiB.
Result<std::unique_ptr<Writer>> create_posix_object(PosixWriting& writing, std::string_view name,
                                                    std::uint64_t bytes_hint);

}  // namespace penstock
