// What one thread has to write to: the counters of the files that it uses, its names, segments, spans and
// totals. Only its thread writes; nothing here takes a lock that another thread takes as often as once in
// thousands of operations.
//
// A signal's handler may come at any instant and do I/O of its own. An operation that comes while its thread
// is in the midst of another one's update is deferred, and counted when that is done.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiling/interpose/counting/descriptors.hpp"
#include "profiling/interpose/counting/file_table.hpp"
#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/writer/session.hpp"
#include "profiling/session_abi.h"

namespace penstock::interpose {

// A call that was made. What does not apply stays 0.
struct Operation {
  penstock_call call = PENSTOCK_CALL_OTHER;
  penstock_layer layer = PENSTOCK_POSIX;
  int failed = 0;            // errno
  std::int64_t offset = -1;  // where it began in its file; -1: it has none
  std::int64_t length = 0;   // that was moved, or mapped
  std::uint64_t begin = 0;   // ticks
  std::uint64_t end = 0;
};

struct ThreadLog {
  struct Cached {
    std::uint64_t tag = 0;  // serial of a description and the layer
    penstock_counters* counters = nullptr;
  };
  // What a handler did within an update: to a file, or to a descriptor that nobody knew, which stands for
  // that inode.
  struct Deferred {
    Operation operation;
    std::uint64_t file = 0;
    std::uint64_t name = 0;
    bool by_descriptor = false;
    int fd = -1;
    dev_t device = 0;
    ino_t number = 0;
  };
  static constexpr std::size_t kCached = 512;
  static constexpr std::size_t kMaxDeferred = 32;

  penstock_thread* totals = nullptr;
  const char* volatile updating = nullptr;  // the stack's top in the update that is under way
  std::uint32_t thread = 0;
  volatile std::uint32_t deferred_count = 0;

  FileTable files;

  penstock_block* counters = nullptr;  // whole ones
  penstock_block* briefs = nullptr;
  penstock_block* names = nullptr;
  penstock_block* segments = nullptr;
  penstock_block* spans = nullptr;
  std::uint64_t counters_bytes = 0;  // of the last block
  std::uint64_t briefs_bytes = 0;
  std::uint64_t names_bytes = 0;
  std::uint64_t segments_bytes = 0;
  std::uint64_t spans_bytes = 0;

  SpareDescription spare;

  // Where it was started: everything that it points to is in the session whose mapping begins at `base`,
  // which stays mapped as long as this does not change. Once that session has ended (`retired`) what its
  // thread was in the midst of may still be counted there, as far as there is room; its next update begins
  // anew in the session that there is then.
  char* base = nullptr;
  volatile bool retired = false;
  volatile bool ending = false;  // with its thread
  ThreadLog** owner = nullptr;   // its thread's own_log
  ThreadLog* next_made = nullptr;

  ThreadLog* next_free = nullptr;
  Cached cache[kCached];
  Deferred deferred[kMaxDeferred];
  AbsoluteName name;  // of what an update is about: handlers may have small stacks
};

extern constinit thread_local ThreadLog* own_log __attribute__((tls_model("initial-exec")));

// The caller's, started if need be; null where nothing is recorded. Leaves errno alone.
[[gnu::cold]] ThreadLog* begin_log() noexcept;
inline ThreadLog* thread_log() noexcept {
  ThreadLog* log = own_log;
  if (log != nullptr) [[likely]] {
    return log;
  }
  return begin_log();
}

// Once, before anything is recorded: what happens when threads end.
void watch_threads() noexcept;
// In a fork's child.
void forget_parents_logs() noexcept;
// Within an Update of the caller's own log: it is of the session that runs now.
void begin_in_session(ThreadLog& log) noexcept;
// While session.changes: waits until no thread is in the midst of an update. False where one stays so for
// seconds (a stopped thread).
bool wait_for_updates() noexcept;
// Then: all logs are those of a session that has ended; threads begin theirs anew.
void retire_logs() noexcept;
// The names that descriptors have are written to the new session as well, for threads that use them on.
// `old_base` is the old one's.
void take_names_along(const char* old_base) noexcept;
// Whether anybody may still write to what is mapped there.
bool is_written_to(const char* base) noexcept;
// A child of vfork() runs in its parent's memory, with descriptors of its own: it records nothing.
void suspend_log() noexcept;
void restore_log() noexcept;
// Whether this is such a child: then descriptors are not to be described either.
bool log_suspended() noexcept;

// A file by what its counters are found and made with.
struct FileRecord {
  std::uint64_t file = 0;
  std::uint64_t name = 0;      // where its name is in the session, or 0 and then
  const char* text = nullptr;  // (absolute, `length` bytes) is written there
  std::uint32_t length = 0;
  penstock_file_kind kind = PENSTOCK_REGULAR;
};
// The counters of (file, layer) in this thread that fit the call, made if need be; null where there is no
// room. `begin`: in ticks, of the operation that this is for.
penstock_counters* counters_of(ThreadLog& log, const FileRecord& file, penstock_layer layer,
                               penstock_call call, std::uint64_t begin) noexcept;
// As counters_of() for a descriptor, which may be one that nobody has seen opened; remembered in the cache.
// Null as well where its operations are kept for no file.
penstock_counters* find_counters(ThreadLog& log, int fd, penstock_layer layer, penstock_call call) noexcept;

void add_segment(ThreadLog& log, std::uint64_t file, const Operation& operation) noexcept;

void add_span(ThreadLog& log, const penstock_span& span) noexcept;

}  // namespace penstock::interpose
