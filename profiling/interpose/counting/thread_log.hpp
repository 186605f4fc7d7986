// What one thread writes to: the counters of the files that it uses, its names, segments, spans and totals.
//
// Threads: only the log's own thread writes to it, inside a wrapper. The thread that changes the session
// (recording.cpp) reads and retires the logs of the others; it holds Control. Locks are taken only for a new
// block of the session's file or a new log, which is less than once in thousands of operations.
// Memory: a log, its table and its blocks come from the kernel (private_memory(), the session's mapped file).
// Nothing here calls malloc or uses a FILE or the locale, since the program may be inside malloc.
// Signals: a handler may come at any instant and do I/O of its own. If its thread is inside an update, its
// operation is deferred and counted after that update (Update, counting.hpp).
// Forks: forget_parents_logs(). The child keeps the log of the thread that forked and leaves the others.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiling/interpose/counting/descriptors.hpp"
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

// A thread's counters by file and layer: a hash table of their addresses in the session, with open
// addressing. Only its thread uses it, within an update, so no handler does.
class FileTable {
 public:
  // Twice or four times as large (the first room, where there is none). False without memory.
  bool grow() noexcept;
  void clear() noexcept;

  // The number of the slot of (file, layer), or of the free one where it belongs; until the next grow().
  std::uint64_t slot_of(std::uint64_t file, penstock_layer layer) const noexcept {
    const std::uint64_t hash = mixed(file, layer);
    for (std::uint64_t i = hash & (slot_count_ - 1);; i = (i + 1) & (slot_count_ - 1)) {
      if (marks_[i] == 0) {
        return i;
      }
      if (marks_[i] == mark_of(hash) && slots_[i] >> kPlaceBits == tag_of(hash)) {
        const penstock_counters& c = *at_place(slots_[i]);
        if (c.file == file && c.layer == layer) {
          return i;
        }
      }
    }
  }
  // It will be asked for soon.
  void expect(std::uint64_t file, penstock_layer layer) const noexcept {
    const std::uint64_t at = mixed(file, layer) & (slot_count_ - 1);
    __builtin_prefetch(marks_ + at, 1);
    __builtin_prefetch(slots_ + at, 1);
  }
  // Null of a free one.
  penstock_counters* at(std::uint64_t slot) const noexcept {
    return marks_[slot] == 0 ? nullptr : at_place(slots_[slot]);
  }
  penstock_counters* find(std::uint64_t file, penstock_layer layer) const noexcept {
    return at(slot_of(file, layer));
  }
  bool is_full() const noexcept { return (filled_ + 1) * 4 > slot_count_ * 3; }
  // Whose slot it is; a free one is filled (not where it is_full()).
  void set(std::uint64_t slot, const penstock_counters& counters) noexcept {
    const std::uint64_t hash = mixed(counters.file, layer_of(counters));
    filled_ += marks_[slot] == 0 ? 1 : 0;
    slots_[slot] = tag_of(hash) << kPlaceBits | reinterpret_cast<std::uint64_t>(&counters) / kPlaceUnit;
    marks_[slot] = mark_of(hash);
  }

 private:
  static constexpr unsigned kPlaceBits = 43;  // an address in units of 32 bytes
  static constexpr std::uint64_t kPlaceMask = (std::uint64_t{1} << kPlaceBits) - 1;
  static constexpr std::uint64_t kTagMask = (std::uint64_t{1} << (64U - kPlaceBits)) - 1;
  static constexpr std::uint64_t kPlaceUnit = 32;
  static_assert(sizeof(penstock_counters) % kPlaceUnit == 0 && sizeof(penstock_brief) % kPlaceUnit == 0 &&
                sizeof(penstock_block) % kPlaceUnit == 0);

  static penstock_layer layer_of(const penstock_counters& counters) noexcept {
    return static_cast<penstock_layer>(counters.layer);
  }
  static std::uint64_t mixed(std::uint64_t file, penstock_layer layer) noexcept {
    const std::uint64_t h = (file + static_cast<std::uint64_t>(layer)) * 0x9e3779b97f4a7c15U;
    return h ^ (h >> 32U);
  }
  static std::uint64_t tag_of(std::uint64_t hash) noexcept { return hash & kTagMask; }
  static std::uint8_t mark_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint8_t>(hash >> 56U | 1U);
  }
  static penstock_counters* at_place(std::uint64_t slot) noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is what it keeps
    return reinterpret_cast<penstock_counters*>((slot & kPlaceMask) * kPlaceUnit);
  }
  static std::size_t bytes_of(std::uint64_t slots) noexcept {
    return slots * (sizeof(std::uint64_t) + sizeof(std::uint8_t));
  }

  // A slot holds 21 bits of the hash and, in units of 32 bytes, where the counters stand. Behind the slots
  // stands a byte for each, of other bits of the hash: whether a file is new is seen in these, of which far
  // more are in the processor's cache; 0 is free.
  std::uint64_t* slots_ = nullptr;
  std::uint8_t* marks_ = nullptr;
  std::uint64_t slot_count_ = 0;
  std::uint64_t filled_ = 0;
};

struct ThreadLog {
  struct Cached {
    std::uint64_t tag = 0;  // serial of a description and the layer
    penstock_counters* counters = nullptr;
  };
  // What a handler did within an update: to a file, or to a descriptor that was not described and referred to
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
  const char* volatile updating = nullptr;  // the stack pointer in the update that runs; null: none
  std::uint32_t thread = 0;
  volatile std::uint32_t deferred_count = 0;

  FileTable files;

  penstock_block* counters = nullptr;  // whole ones
  penstock_block* briefs = nullptr;
  penstock_block* names = nullptr;
  penstock_block* segments = nullptr;
  penstock_block* spans = nullptr;

  SpareDescription spare;

  // Everything that the log points to is in the session whose mapping begins at `base`. That mapping stays as
  // long as `base` does not change. When the session has ended, the log is `retired`: an update that was
  // running may still count there, as far as there is room, and the next one begins in the session that runs
  // then.
  char* base = nullptr;
  volatile bool retired = false;
  volatile bool ending = false;  // with its thread
  ThreadLog** owner = nullptr;   // its thread's own_log; null: no thread has this log
  ThreadLog* next_made = nullptr;

  ThreadLog* next_free = nullptr;
  Cached cache[kCached];
  Deferred deferred[kMaxDeferred];
  AbsoluteName name;  // a buffer for updates, because the stacks of handlers may be small
};

extern constinit thread_local ThreadLog* own_log __attribute__((tls_model("initial-exec")));

// The caller's log, made at the first call; null where nothing is recorded. Leaves errno alone.
[[gnu::cold]] ThreadLog* begin_log() noexcept;
inline ThreadLog* thread_log() noexcept {
  ThreadLog* log = own_log;
  if (log != nullptr) [[likely]] {
    return log;
  }
  return begin_log();
}

// Once, when the library is loaded: has the logs of threads that end given back.
void watch_threads() noexcept;
// In a fork's child, before its first counted call. Waits for nothing.
void forget_parents_logs() noexcept;
// Within an Update of the caller's own log: moves it to the session that runs now.
void begin_in_session(ThreadLog& log) noexcept;
// While session.changes is set: waits until no thread is inside an update. False if one still is after two
// seconds (a stopped thread).
bool wait_for_updates() noexcept;
// After that: all logs belong to a session that has ended. Threads begin anew at their next call.
void retire_logs() noexcept;
// Also then: copies the names of all described descriptors to the new session, for threads that use them on.
// `old_base` is the mapping of the old one.
void take_names_along(const char* old_base) noexcept;
// Whether a thread may still write to what is mapped there.
bool is_written_to(const char* base) noexcept;
// A child of vfork() runs in its parent's memory and on its thread's thread-local variables, with descriptors
// of its own. It records nothing: between these two calls the thread has no log.
void suspend_log() noexcept;
void restore_log() noexcept;
// Whether this is such a child. Then its descriptors must not be described either: they are not the parent's.
bool log_suspended() noexcept;

// What the counters of a file are found and made with.
struct FileRecord {
  std::uint64_t file = 0;
  std::uint64_t name = 0;      // where its name is in the session, or 0 and then
  const char* text = nullptr;  // (absolute, `length` bytes) is written there
  std::uint32_t length = 0;
  penstock_file_kind kind = PENSTOCK_REGULAR;
};
// The counters of (file, layer) in this thread that fit the call, made if necessary; null where there is no
// room. `begin`: the begin of the operation that they are for, in ticks. Within an Update.
penstock_counters* counters_of(ThreadLog& log, const FileRecord& file, penstock_layer layer,
                               penstock_call call, std::uint64_t begin) noexcept;
// counters_of() for a descriptor, which /proc is asked for if it is not described. Remembered in the cache.
// Null also where its operations are kept for no file. Within an Update.
penstock_counters* find_counters(ThreadLog& log, int fd, penstock_layer layer, penstock_call call) noexcept;

// Of a block: bytes that no entry has yet (0 of none), and where they begin.
inline std::uint64_t room_left(const penstock_block* block) noexcept {
  return block == nullptr ? 0 : block->bytes - sizeof(penstock_block) - block->used;
}
inline char* free_part(penstock_block* block) noexcept {
  return reinterpret_cast<char*>(block) + sizeof(penstock_block) + block->used;
}
// The entries behind the last one are whole up to there: from now on they are seen.
inline void use(penstock_block* block, std::uint64_t bytes) noexcept {
  __atomic_store_n(&block->used, block->used + bytes, __ATOMIC_RELEASE);
}

// Within an update, or for a log that no thread uses: where the name is in the session from now on, in bytes
// from `base`; 0 without room.
std::uint64_t add_name(ThreadLog& log, std::uint64_t file, const char* text, std::uint32_t length,
                       penstock_file_kind kind) noexcept;
// Within an update: one kept call, one span of the program. Without room they count as dropped.
void add_segment(ThreadLog& log, std::uint64_t file, const Operation& operation) noexcept;

void add_span(ThreadLog& log, const penstock_span& span) noexcept;

}  // namespace penstock::interpose
