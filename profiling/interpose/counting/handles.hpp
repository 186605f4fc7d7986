// A table that stores the file of each handle of another library (MPI_File, hid_t): the file's key and name.
// It has one lock and is searched linearly. That is fast enough: few handles are open at a time, and opening
// one takes much longer than the search.
//
// Threads: wrappers of MPI and HDF5, in any thread. Asynchronous I/O also calls count_handle().
// Locks: the caller of count_handle() may hold the lock of a ring or of AsyncOperations; all other callers
// hold none.
// Memory: static memory. errno does not change.
// Signals: a handler that interrupts its own thread here finds no handle.
#pragma once

#include <cstdint>

#include "profiling/interpose/counting/thread_log.hpp"

namespace penstock::interpose {

struct HandleFile {
  uint64_t file = 0;  // key of the file; 0: the handle is not known
  uint64_t name = 0;  // offset of the file's name in the session
};

// Stores the file of a handle that was opened. `kind` says whether it is a handle of MPI or of HDF5.
void remember_handle(unsigned kind, uint64_t handle, HandleFile file) noexcept;
HandleFile find_handle(unsigned kind, uint64_t handle) noexcept;
// Removes a handle, and returns the file that it referred to. Called before the handle is closed: afterwards
// another thread may get a handle with the same number.
HandleFile forget_handle(unsigned kind, uint64_t handle) noexcept;
// Called in a fork's child: frees the lock, which a thread of the parent may have held.
void reset_handles_lock_after_fork() noexcept;

// Counts an operation of MPI or HDF5 on a named file. Returns the file; its member `file` is 0 if the
// operation was not counted.
HandleFile count_named_file(ThreadLog& log, const char* path, const struct Operation& operation) noexcept;
// Counts an operation on the file of a handle, or on the file of an asynchronous operation.
void count_handle(ThreadLog& log, const HandleFile& file, const Operation& operation) noexcept;

}  // namespace penstock::interpose
