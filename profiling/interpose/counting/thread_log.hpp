// The data that one thread writes: the counters of the files that it uses, its names, segments, spans and
// totals.
//
// Threads: only the log's own thread writes to it, inside a wrapper. The thread that changes the session
// (recording.cpp) holds Control; it reads the logs of all threads and marks them as retired.
// Locks: taken only for a new block of the session's file or a new log. A new block is seldom needed, because
// a log's blocks grow up to 256 KiB.
// Memory: a log, its table and its blocks come from the kernel (private_memory(), the session's mapped file).
// Nothing here calls malloc or uses a FILE or the locale, because the program may be inside malloc.
// Signals: a handler may run at any instant and do I/O of its own. If it has interrupted an update of its own
// thread, its operation is counted after that update (Update, counting.hpp), or counts as dropped if it is on
// a name.
// Forks: the child calls forget_parents_logs(). It reuses the memory of the forking thread's log, and does
// not use the logs of the parent's other threads.
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

// One call that was made. Members that do not apply to the call keep their default values.
struct Operation {
  penstock_call call = PENSTOCK_CALL_OTHER;
  penstock_layer layer = PENSTOCK_POSIX;
  int failed = 0;       // errno; 0: the call succeeded
  int64_t offset = -1;  // offset in the file where the call began; -1: the call has none
  int64_t length = 0;   // bytes that were read, written or mapped
  uint64_t begin = 0;   // in ticks, like `end`
  uint64_t end = 0;
};

// Finds a thread's counters by file and layer. It is a hash table with open addressing; a slot stores the
// address of counters in the session's mapped file. Only the log's own thread uses it, within an update, so
// no handler uses it at the same time.
class FileTable {
 public:
  // Makes the table two or four times as large, or creates it. False if there is no memory.
  bool grow() noexcept;
  void clear() noexcept;

  // The index of the slot of (file, layer), or of the free slot for it. Valid until the next grow().
  uint64_t slot_of(uint64_t file, penstock_layer layer) const noexcept {
    const uint64_t hash = hash_of(file, layer);
    for (uint64_t i = hash & (slot_count_ - 1);; i = (i + 1) & (slot_count_ - 1)) {
      if (marks_[i] == 0) {
        return i;
      }
      if (marks_[i] == mark_of(hash) && slots_[i] >> kAddressBits == tag_of(hash)) {
        const penstock_counters& c = *counters_at(slots_[i]);
        if (c.file == file && c.layer == layer) {
          return i;
        }
      }
    }
  }
  // Prefetches the slot of (file, layer), which will be used soon.
  void prefetch(uint64_t file, penstock_layer layer) const noexcept {
    const uint64_t at = hash_of(file, layer) & (slot_count_ - 1);
    __builtin_prefetch(marks_ + at, 1);
    __builtin_prefetch(slots_ + at, 1);
  }
  // Null for a free slot.
  penstock_counters* at(uint64_t slot) const noexcept {
    return marks_[slot] == 0 ? nullptr : counters_at(slots_[slot]);
  }
  penstock_counters* find(uint64_t file, penstock_layer layer) const noexcept {
    return at(slot_of(file, layer));
  }
  bool is_full() const noexcept { return (filled_slots_ + 1) * 4 > slot_count_ * 3; }
  // Stores the address of `counters` in the slot. A free slot may be filled only if the table is not full
  // (is_full()).
  void set(uint64_t slot, const penstock_counters& counters) noexcept {
    const uint64_t hash = hash_of(counters.file, layer_of(counters));
    filled_slots_ += marks_[slot] == 0 ? 1 : 0;
    slots_[slot] = tag_of(hash) << kAddressBits | reinterpret_cast<uint64_t>(&counters) / kAddressUnit;
    marks_[slot] = mark_of(hash);
  }

 private:
  static constexpr unsigned kAddressBits = 43;  // an address in units of 32 bytes
  static constexpr uint64_t kAddressMask = (uint64_t{1} << kAddressBits) - 1;
  static constexpr uint64_t kTagMask = (uint64_t{1} << (64U - kAddressBits)) - 1;
  static constexpr uint64_t kAddressUnit = 32;
  static_assert(sizeof(penstock_counters) % kAddressUnit == 0 && sizeof(penstock_brief) % kAddressUnit == 0 &&
                sizeof(penstock_block) % kAddressUnit == 0);

  static penstock_layer layer_of(const penstock_counters& counters) noexcept {
    return static_cast<penstock_layer>(counters.layer);
  }
  static uint64_t hash_of(uint64_t file, penstock_layer layer) noexcept {
    const uint64_t h = (file + uint64_t(layer)) * 0x9e3779b97f4a7c15U;
    return h ^ (h >> 32U);
  }
  static uint64_t tag_of(uint64_t hash) noexcept { return hash & kTagMask; }
  static uint8_t mark_of(uint64_t hash) noexcept { return uint8_t(hash >> 56U | 1U); }
  static penstock_counters* counters_at(uint64_t slot) noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the slot has an address
    return reinterpret_cast<penstock_counters*>((slot & kAddressMask) * kAddressUnit);
  }
  static size_t bytes_of(uint64_t slots) noexcept { return slots * (sizeof(uint64_t) + sizeof(uint8_t)); }

  // Each slot has 21 bits of the hash, and the address of the counters in units of 32 bytes. marks_, in the
  // memory after the slots, has one byte for each slot: 0 if the slot is free, otherwise other bits of the
  // hash. A search reads marks_ first, because it is eight times smaller than slots_ and more of it fits in
  // the processor's cache.
  uint64_t* slots_ = nullptr;
  uint8_t* marks_ = nullptr;
  uint64_t slot_count_ = 0;
  uint64_t filled_slots_ = 0;
};

struct ThreadLog {
  struct Cached {
    uint64_t tag = 0;  // cache_tag(): a description's serial, and the layer
    penstock_counters* counters = nullptr;
  };
  // An operation of a handler that interrupted an update. If `by_descriptor` is false, the operation was made
  // on `file`. If it is true, the operation was made on the descriptor `fd`, which was not described;
  // `device` and `inode` are those of the file to which `fd` referred. `file` is the key of the file, `name`
  // the offset of its name in the session.
  struct Deferred {
    Operation operation;
    uint64_t file = 0;
    uint64_t name = 0;
    bool by_descriptor = false;
    int fd = -1;
    dev_t device = 0;
    ino_t inode = 0;
  };
  static constexpr size_t kCacheEntries = 512;
  static constexpr size_t kMaxDeferred = 32;

  penstock_thread* totals = nullptr;
  const char* volatile update_mark = nullptr;  // stack pointer of the running update; null: none runs
  uint32_t thread = 0;
  volatile uint32_t deferred_count = 0;

  FileTable files;

  penstock_block* counters = nullptr;  // the current block of whole counters; `brief_counters`: of brief ones
  penstock_block* brief_counters = nullptr;
  penstock_block* names = nullptr;
  penstock_block* segments = nullptr;
  penstock_block* spans = nullptr;

  SpareDescription spare_description;

  // The address of the session's mapping. All blocks and counters of the log are in this mapping, which stays
  // mapped as long as `base` does not change.
  char* base = nullptr;
  // The session at `base` has ended. The thread's next Update moves the log to the session that runs then.
  // Before that Update, a call may still be counted in the old mapping.
  volatile bool is_retired = false;
  volatile bool is_ending = false;  // its thread is ending
  ThreadLog** owner = nullptr;      // address of its thread's own_log; null: no thread has this log
  ThreadLog* next_log = nullptr;

  ThreadLog* next_free = nullptr;
  Cached cache[kCacheEntries];
  Deferred deferred[kMaxDeferred];
  AbsoluteName name;  // a buffer for updates: a handler's stack may be too small for it
};

extern constinit thread_local ThreadLog* own_log __attribute__((tls_model("initial-exec")));

// Exists while a wrapper calls a function of libc's name in another library, such as an allocator's mmap() or
// another profiler's fread(). The wrapper counts that call. What the other library calls meanwhile in this
// thread is part of it and is not counted again: thread_log() returns null. Any thread may use this; nothing
// is allocated. A limit: the I/O of a handler that interrupts such a call is not counted either.
//
// begin_ is the stack address where the call began, or null. If a handler leaves the call by longjmp(),
// begin_ stays set. is_active() is false nevertheless: the frames of the call's callers have higher addresses
// than begin_.
class InOtherLibrary {
 public:
  InOtherLibrary() noexcept : outer_begin_(begin_) { begin_ = reinterpret_cast<const char*>(this); }
  ~InOtherLibrary() { begin_ = outer_begin_; }
  InOtherLibrary(const InOtherLibrary&) = delete;
  InOtherLibrary& operator=(const InOtherLibrary&) = delete;
  static bool may_be_active() noexcept { return begin_ != nullptr; }
  static bool is_active() noexcept {
    const char here = 0;
    const char* const begin = begin_;
    return begin != nullptr && begin > &here;
  }
  // Called in a fork's child that runs the program's own function inside the call.
  static void forget() noexcept { begin_ = nullptr; }

 private:
  static constinit thread_local const char* volatile begin_ __attribute__((tls_model("initial-exec")));
  const char* outer_begin_;
};

// Makes the calling thread's log, or finds the log that the thread had in an earlier session. Null if nothing
// is recorded, or if the call is part of one that is counted (InOtherLibrary). Takes logs_lock for a new log,
// and file_lock for a new block. errno does not change.
[[gnu::cold]] ThreadLog* begin_log() noexcept;
// Returns the calling thread's log; null if nothing is recorded. Any thread and any handler may call this. A
// thread's first call may take locks (begin_log()).
inline ThreadLog* thread_log() noexcept {
  ThreadLog* log = own_log;
  if (log != nullptr && !InOtherLibrary::may_be_active()) [[likely]] {
    return log;
  }
  return begin_log();
}

// From now on each thread gives its log back when it ends, so that another thread can use it. Called once,
// when the library is loaded.
void watch_threads() noexcept;
// Called in a fork's child before its first counted call: resets the locks without waiting for them, and
// forgets the logs of the parent's other threads.
void forget_parents_logs() noexcept;
// The caller holds an Update of its own log. Moves the log to the session that runs now.
void begin_in_session(ThreadLog& log) noexcept;
// Called while session.is_changing is set: waits until no thread is inside an update. False if a thread is
// still inside one after two seconds, for example because it is stopped.
bool wait_for_updates() noexcept;
// Called after wait_for_updates(): marks all logs as retired, because their session has ended. Each thread
// moves to the new session at its next call.
void retire_logs() noexcept;
// Called after wait_for_updates(): copies the names of all described descriptors to the new session, because
// threads continue to use the descriptors. `old_base` is the mapping of the old session.
void copy_names_to_session(const char* old_base) noexcept;
// Whether a thread may still write to the session that is mapped at `base`.
bool is_written_to(const char* base) noexcept;
// Called before vfork(): until restore_log() the calling thread has no log, so the child records nothing.
// Otherwise the child would use the log of its parent's thread, because it runs in the parent's memory.
void suspend_log() noexcept;
// Called in the parent after vfork(), when the child has called exec() or ended: gives the thread its log
// again.
void restore_log() noexcept;
// Whether a vfork's child runs now, between suspend_log() and restore_log(). The child's descriptors are not
// described: the table of descriptors is in the parent's memory, but the descriptors are the child's own.
bool log_suspended() noexcept;

// What counters_of() needs to know about a file: `file` to find its counters, and the rest to make them.
struct FileRecord {
  uint64_t file = 0;
  uint64_t name = 0;           // offset of its name in the session; 0: the name is written from `text`
  const char* text = nullptr;  // absolute name of `length` bytes
  uint32_t length = 0;
  penstock_file_kind kind = PENSTOCK_REGULAR;
};
// Returns this thread's counters of (file, layer) to which the call can be added, and makes them if
// necessary. Null if there is no room. `begin` is the start of the operation, in ticks. The caller
// holds an Update.
penstock_counters* counters_of(ThreadLog& log, const FileRecord& file, penstock_layer layer,
                               penstock_call call, uint64_t begin) noexcept;
// Returns this thread's counters for the file of a descriptor, like counters_of(), and stores them in the
// log's cache. If the descriptor is not described, its file is looked up in /proc. Null if there is no room,
// or if the descriptor has no file (a pipe, for example). The caller holds an Update.
penstock_counters* find_counters(ThreadLog& log, int fd, penstock_layer layer, penstock_call call) noexcept;

// The number of bytes of the block that no entry uses yet; 0 if `block` is null.
inline uint64_t free_bytes(const penstock_block* block) noexcept {
  return block == nullptr ? 0 : block->bytes - sizeof(penstock_block) - block->used;
}
// The address of the first byte of the block that no entry uses yet.
inline char* first_free_byte(penstock_block* block) noexcept {
  return reinterpret_cast<char*>(block) + sizeof(penstock_block) + block->used;
}
// Makes the next `bytes` bytes of the block visible to readers. The entries in them must be complete.
inline void publish_entries(penstock_block* block, uint64_t bytes) noexcept {
  __atomic_store_n(&block->used, block->used + bytes, __ATOMIC_RELEASE);
}

// Writes a name to the session. Returns its offset from `base`; 0 if there is no room. The caller holds an
// Update, or no thread uses the log.
uint64_t add_name(ThreadLog& log, uint64_t file, const char* text, uint32_t length,
                  penstock_file_kind kind) noexcept;
// The caller holds an Update, or an OuterUpdate if the block has room. Adds one traced call. If there is no
// room, the call counts as dropped.
void add_segment(ThreadLog& log, uint64_t file, const Operation& operation) noexcept;
// The caller holds an Update. Adds one span of the program. If there is no room, the span counts as dropped.
void add_span(ThreadLog& log, const penstock_span& span) noexcept;

}  // namespace penstock::interpose
