// Making an object in a folder of the operating system so that nobody ever sees half of it.
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

// How the writers of one back end work; shared by them, any thread.
struct PosixWriting {
  PosixRoot& root;
  MovedCounter& moved;
  DirectMode& direct;  // where offset, length and memory are aligned
  // Nameless files (O_TMPFILE) where the file system has them: even SIGKILL leaves nothing behind. Cleared
  // when it turns out that it has not; then the object has a temporary name until it is published.
  std::atomic<bool> nameless{true};
  // They get their name by their descriptor alone. Cleared where the kernel wants /proc for it.
  std::atomic<bool> link_by_descriptor{true};
};

// A Writer for `name`. Reserves `bytes_hint` bytes where that keeps large files in one piece (from 1 MiB, not
// in memory). With direct I/O, appended bytes go out in aligned blocks of 1 MiB; 1 MiB and more at once that
// lies aligned in memory, and comes behind whole blocks of 4 KiB, goes out from there without a copy.
Result<std::unique_ptr<Writer>> create_posix_object(PosixWriting& writing, std::string_view name,
                                                    std::uint64_t bytes_hint);

}  // namespace penstock
