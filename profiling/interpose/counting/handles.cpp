// The table of the handles of MPI and HDF5.
//
// Threads: any thread, in wrappers of MPI and HDF5.
// Locks: the caller of count_handle() may hold the lock of a ring or of AsyncOperations; all other callers
// hold none. handles_lock is held only while the table is searched or changed, and never while an operation
// is counted.
// Memory: static memory only.
// Signals: a handler whose own thread holds handles_lock gets has_lock() == false and does nothing.
// Forks: a child resets the lock (reset_handles_lock_after_fork()).
#include "profiling/interpose/counting/handles.hpp"

#include <fcntl.h>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"

namespace penstock::interpose {

namespace {

constexpr size_t kMostHandles = 4096;
struct Entry {
  uint64_t handle = 0;
  unsigned kind = 0;
  bool is_used = false;
  HandleFile file;
};
Entry entries[kMostHandles];
size_t used_end = 0;  // 1 + the highest index that was ever used
constinit OwnedLock handles_lock;

// Finds the entry of a handle; null if the handle is not known. The caller holds handles_lock.
Entry* entry_of(unsigned kind, uint64_t handle) noexcept {
  for (size_t i = 0; i < used_end; ++i) {
    if (entries[i].is_used && entries[i].kind == kind && entries[i].handle == handle) {
      return &entries[i];
    }
  }
  return nullptr;
}

}  // namespace

// Stores the file of a handle. Called after MPI or HDF5 has opened the handle. If there is an old entry with
// the same number, it is replaced, because MPI and HDF5 use the numbers of handles again.
void remember_handle(unsigned kind, uint64_t handle, HandleFile file) noexcept {
  const LockGuard guard(handles_lock);
  if (!guard.has_lock()) {
    return;
  }
  Entry* entry = entry_of(kind, handle);
  for (size_t i = 0; i < used_end && entry == nullptr; ++i) {
    entry = entries[i].is_used ? nullptr : &entries[i];
  }
  if (entry == nullptr) {
    if (used_end == kMostHandles) {
      return;
    }
    entry = &entries[used_end++];
  }
  *entry = {.handle = handle, .kind = kind, .is_used = true, .file = file};
}

HandleFile find_handle(unsigned kind, uint64_t handle) noexcept {
  const LockGuard guard(handles_lock);
  const Entry* entry = guard.has_lock() ? entry_of(kind, handle) : nullptr;
  return entry == nullptr ? HandleFile{} : entry->file;
}

// Called in a fork's child, which has one thread: frees the lock, because its owner may not exist in the
// child. If a thread of the parent was writing an entry at the fork, that entry may have a wrong file. The
// child uses it only if it uses that handle of the parent.
void reset_handles_lock_after_fork() noexcept {
  handles_lock.reset();
}

// Removes the entry of a handle, and returns its file. Called before the handle is closed. If the close
// fails, the handle stays open, but its later operations are not counted as calls of MPI or HDF5.
HandleFile forget_handle(unsigned kind, uint64_t handle) noexcept {
  const LockGuard guard(handles_lock);
  Entry* entry = guard.has_lock() ? entry_of(kind, handle) : nullptr;
  if (entry == nullptr) {
    return {};
  }
  entry->is_used = false;
  return entry->file;
}

// Counts an operation on a named file. Called after the call of MPI or HDF5. `path` is the program's string.
// In a handler that interrupted an update of its own thread, the operation is not counted, because the update
// may be using log.name.
HandleFile count_named_file(ThreadLog& log, const char* path, const Operation& operation) noexcept {
  Update update(log);
  AbsoluteName& name = log.name;
  if (update.is_nested() || !absolute_name(AT_FDCWD, path, name)) {
    return {};
  }
  const penstock_counters* c =
      count_of_file(log, {.file = name.file, .text = name.text, .length = name.length}, operation);
  return c == nullptr ? HandleFile{} : HandleFile{.file = name.file, .name = c->name};
}

// Counts an operation on the file of a handle. May wait in Update (counting.hpp) while another thread changes
// the session, and may take the session's file_lock for a new block.
void count_handle(ThreadLog& log, const HandleFile& file, const Operation& operation) noexcept {
  if (file.file == 0) {
    return;
  }
  Update update(log);
  if (update.is_nested()) {
    update.defer(file.file, file.name, operation);
    return;
  }
  count_of_file(log, {.file = file.file, .name = file.name}, operation);
}

}  // namespace penstock::interpose
