// What handles of other libraries (MPI_File, hid_t) stand for: a file's key and name. Few are open at a time,
// and opening one costs more than finding it: a table behind a lock.
#pragma once

#include <cstdint>

#include "profiling/interpose/counting/thread_log.hpp"

namespace penstock::interpose {

struct HandleFile {
  std::uint64_t file = 0;  // 0: nobody knows the handle
  std::uint64_t name = 0;
};

// `kind` keeps the handles of one library apart from those of another.
void remember_handle(unsigned kind, std::uint64_t handle, HandleFile file) noexcept;
HandleFile find_handle(unsigned kind, std::uint64_t handle) noexcept;
void forget_handle(unsigned kind, std::uint64_t handle) noexcept;
// In a fork's child, whose parent's other threads may have been at the table.
void free_handles_after_fork() noexcept;

// An operation in a layer above POSIX on a named file. What it counts for is returned, 0 where it is not
// recorded.
HandleFile count_named(ThreadLog& log, const char* path, const struct Operation& operation) noexcept;
void count_handle(ThreadLog& log, const HandleFile& file, const Operation& operation) noexcept;

}  // namespace penstock::interpose
