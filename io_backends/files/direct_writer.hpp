// Writes an object with O_DIRECT into a folder of the operating system.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/sharded_counter.hpp"
#include "io_backends/files/direct_io.hpp"
#include "io_backends/files/posix_root.hpp"

namespace penstock {

// Makes a PosixWriter that bypasses the page cache. Appended bytes are copied to a buffer and written in
// aligned blocks of 1 MiB. An append of at least 1 MiB is written without a copy if its memory and its offset
// in the object are aligned to 4 KiB and the buffer is empty. Unaligned bytes go through the page cache. If
// the file system has no direct I/O and `direct` may be turned off, the whole object goes through the page
// cache.
Result<std::unique_ptr<Writer>> create_direct_object(PosixRoot& folder, MovedCounter& moved,
                                                     DirectMode& direct, std::string_view name,
                                                     uint64_t bytes_hint);

}  // namespace penstock
