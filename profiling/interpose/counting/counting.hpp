// Adds operations to a thread's counters. The rules for sequential and consecutive operations, size buckets,
// and switches between reads and writes are those of Darshan (darshan-runtime, POSIX module). They apply per
// thread and file.
//
// Threads: all functions run in a wrapper, in the thread that owns the log (ThreadLog, thread_log.hpp),
// before or after the program's call.
// Locks: none is held on entry, with two exceptions: the lock of a Ring or of AsyncOperations if asynchronous
// I/O is counted, and Control (recording.hpp) when recording ends. The rare paths take file_lock
// (session_file.hpp).
// Memory: the common path (count(), count_read_or_write(), count_in_counters()) only adds to memory that is
// mapped already. The rare paths take blocks of the session's file, and memory from the kernel. Nothing calls
// malloc, or uses a FILE or the locale. errno does not change.
// Signals: a handler may run at any instruction, and its I/O is counted in the same log. Update detects that
// a handler has interrupted an update. In that case the handler's operation is deferred; if it is on a name,
// it counts as dropped. Counters are not atomic: only their thread and its handlers write them. Other
// processes may read them at any moment.
// Forks: a child's first counted call begins a session of its own (thread_lives.cpp).
#pragma once

#include <errno.h>

#include <array>
#include <bit>
#include <type_traits>

#include "profiling/interpose/counting/thread_log.hpp"

namespace penstock::interpose {

inline const char* stack_top() noexcept {
  const char* top = nullptr;
#if defined(__x86_64__)
  __asm__ volatile("mov %%rsp, %0" : "=r"(top));
#else
  __asm__ volatile("mov %0, sp" : "=r"(top));
#endif
  return top;
}

// Gives the histogram bucket of all sizes with the same number of binary digits. At most one limit of a
// bucket is among these sizes, so the sizes are in one bucket or in two.
struct SizeBucket {
  uint64_t limit = 0;  // larger sizes are in the bucket after `bucket`
  uint64_t bucket = 0;
};
extern const std::array<SizeBucket, 65> size_buckets;

inline size_t size_bucket(uint64_t bytes) noexcept {
  const SizeBucket& entry = size_buckets[std::bit_width(bytes)];
  return entry.bucket + (bytes > entry.limit ? 1 : 0);
}

// Whether the counters are brief ones (penstock_brief). These need less memory and are enough for most files.
// All other counters are whole ones.
inline bool is_brief(const penstock_counters& c) noexcept {
  return c.form == PENSTOCK_BRIEF || c.form == PENSTOCK_CONTINUED;
}
inline penstock_brief& as_brief(penstock_counters& c) noexcept {
  return reinterpret_cast<penstock_brief&>(c);
}
inline const penstock_brief& as_brief(const penstock_counters& c) noexcept {
  return reinterpret_cast<const penstock_brief&>(c);
}
// Calls `work` with the counters as a penstock_brief or a penstock_counters, according to their form.
[[gnu::always_inline]] inline auto visit_counters(auto& c, auto work) noexcept {
  if (is_brief(c)) [[likely]] {
    return work(as_brief(c));
  }
  return work(c);
}

// Adds one to the counter if `condition`. The caller has checked can_count(), so that no counter overflows.
template <typename Count>
[[gnu::always_inline]] inline void add_one(Count& count, bool condition = true) noexcept {
  count = static_cast<Count>(count + (condition ? 1U : 0U));
}

// Stores the file's size if it is larger than the size that was stored before.
[[gnu::always_inline]] inline void note_size(penstock_counters& c, uint64_t size) noexcept {
  visit_counters(c, [size](auto& fields) { fields.size = size > fields.size ? size : fields.size; });
}

// Stores the highest byte that was read, before a read that ends at a lower one.
inline void note_highest_read(penstock_counters& c, uint64_t byte) noexcept {
  c.highest_read = byte > c.highest_read ? byte : c.highest_read;
}
inline void note_highest_read(penstock_brief& c, uint64_t byte) noexcept {
  constexpr uint64_t kMost = (uint64_t{1} << 48U) - 1;
  const uint64_t highest = uint64_t{c.highest_read_upper} << 32U | c.highest_read_lower;
  byte = byte > kMost ? kMost : byte;
  if (byte > highest) {
    c.highest_read_upper = uint16_t(byte >> 32U);
    c.highest_read_lower = uint32_t(byte);
  }
}

[[gnu::always_inline]] inline void add_read(penstock_counters& c, int64_t offset, int64_t bytes,
                                            uint64_t begin, uint64_t end) noexcept {
  visit_counters(c, [=](auto& fields) {
    const auto last_byte = int64_t(fields.last_read);
    add_one(fields.reads);
    add_one(fields.sequential_reads, offset > last_byte);
    add_one(fields.consecutive_reads, offset == last_byte + 1);
    if (bytes != 0 && offset + bytes - 1 < last_byte) {
      note_highest_read(fields, uint64_t(last_byte));
    }
    // A read that moved nothing leaves no position: it may begin anywhere.
    fields.last_read = bytes != 0 ? uint64_t(offset + bytes - 1) : fields.last_read;
    fields.bytes_read += uint64_t(bytes);
    const auto end_offset = uint64_t(offset + bytes);
    if (end_offset > fields.size && bytes != 0) [[unlikely]] {  // a read of 0 bytes may begin past the end
      fields.size = end_offset;
    }
    add_one(fields.read_sizes[size_bucket(uint64_t(bytes))]);
    if constexpr (std::is_same_v<decltype(fields), penstock_counters&>) {
      if (fields.last_was == 2) [[unlikely]] {
        fields.read_write_switches += 1;
      }
    }
    fields.last_was = 1;
    fields.read_ticks += end - begin;
    fields.first_read_ticks = fields.first_read_ticks == PENSTOCK_NEVER ? begin : fields.first_read_ticks;
    fields.last_read_ticks = end;
  });
}

// Only for whole counters: can_count() and counters_of() never choose brief ones for a write.
inline void add_write(penstock_counters& c, int64_t offset, int64_t bytes, uint64_t begin,
                      uint64_t end) noexcept {
  const auto last_byte = int64_t(c.last_written);
  c.writes += 1;
  c.sequential_writes += offset > last_byte ? 1U : 0U;
  c.consecutive_writes += offset == last_byte + 1 ? 1U : 0U;
  if (bytes != 0 && offset + bytes - 1 < last_byte && uint64_t(last_byte) > c.highest_written) {
    c.highest_written = uint64_t(last_byte);
  }
  c.last_written = bytes != 0 ? uint64_t(offset + bytes - 1) : c.last_written;
  c.bytes_written += uint64_t(bytes);
  const auto end_offset = uint64_t(offset + bytes);
  if (end_offset > c.size && bytes != 0) {
    c.size = end_offset;
  }
  c.write_sizes[size_bucket(uint64_t(bytes))] += 1;
  c.read_write_switches += c.last_was == 1 ? 1U : 0U;
  c.last_was = 2;
  c.write_ticks += end - begin;
  c.first_write_ticks = c.first_write_ticks == PENSTOCK_NEVER ? begin : c.first_write_ticks;
  c.last_write_ticks = end;
}

// Adds a call that is neither a read nor a write.
[[gnu::always_inline]] inline void add_other_call(penstock_counters& c, const Operation& operation) noexcept {
  if (operation.call == PENSTOCK_CALL_SYNC) {
    c.syncs += 1;  // only whole counters get here (needs_whole_counters()); brief ones have no `syncs`
  } else if (operation.call == PENSTOCK_CALL_MAP) {
    c.maps += 1;
    c.mapped_bytes += uint64_t(operation.length);
  }
  visit_counters(
      c, [&operation](auto& fields) __attribute__((always_inline)) {
        switch (operation.call) {
          case PENSTOCK_CALL_OPEN:
            add_one(fields.opens);
            break;
          case PENSTOCK_CALL_CLOSE:
            add_one(fields.closes);
            break;
          case PENSTOCK_CALL_STAT:
            add_one(fields.stats);
            break;
          case PENSTOCK_CALL_SEEK:
            add_one(fields.seeks);
            break;
          case PENSTOCK_CALL_SYNC:
          case PENSTOCK_CALL_MAP:
            break;
          default:
            add_one(fields.other);
            break;
        }
        fields.meta_ticks += operation.end - operation.begin;
        fields.last_ticks = operation.end;
      });
}

// Adds an operation to counters for which can_count() is true. A failed operation counts only as a failure.
[[gnu::always_inline]] inline void add_operation(penstock_counters& c, const Operation& operation) noexcept {
  if (operation.failed != 0) [[unlikely]] {
    visit_counters(c, [](auto& fields) { fields.failures += 1; });
  } else if (operation.call == PENSTOCK_CALL_READ) {
    add_read(c, operation.offset, operation.length, operation.begin, operation.end);
  } else if (operation.call == PENSTOCK_CALL_WRITE) {
    add_write(c, operation.offset, operation.length, operation.begin, operation.end);
  } else {
    add_other_call(c, operation);
  }
}

// Records the call as a segment if calls are traced. The caller holds an Update, because this may take
// another block.
[[gnu::always_inline]] inline void record_segment(ThreadLog& log, uint64_t file,
                                                  const Operation& operation) noexcept {
  if (segments_wanted()) [[unlikely]] {
    const Operation copy = operation;  // copied only here, so that elsewhere the operation stays in registers
    add_segment(log, file, copy);
  }
}

// Counts the operations that handlers deferred. Called at the end of the update that the handlers
// interrupted; it makes an update of its own. If the session has ended meanwhile, the operations are dropped.
[[gnu::cold]] void count_all_deferred(ThreadLog& log) noexcept;

// Waits while another thread changes the session, and then moves the log to the session that runs, if there
// is one. On return `update_mark` is `top`. It may block, so it is called only in outermost updates.
[[gnu::cold]] void follow_session(ThreadLog& log, const char* top) noexcept;

// An update of this thread's log: while it exists, its thread may change the log's data. It marks the log
// (`update_mark`). The mark is read in two places:
//
// - A handler in the same thread sees the mark. The handler's own update is then called nested: the handler
//   defers or drops its operation, because the log's data may be half changed. A signal fence is enough here.
//   It keeps the compiler from moving stores to the log's data to before the mark is set or after it is
//   cleared.
// - The thread that changes the session (recording.cpp) waits until no log is marked. It sets
//   session.is_changing, makes all threads run a barrier (membarrier), and then reads the marks. Because of
//   that barrier, this class needs no barrier of its own: it stores the mark and then loads
//   session.is_changing. The order matters: if the load came first, each thread could miss what the other one
//   has stored, and this update would write to the file of an ended session.
class Update {
 public:
  explicit Update(ThreadLog& log) noexcept : log_(log) {
    const char* top = stack_top();
    // A mark above this frame is that of an interrupted update: a handler's frames have lower addresses than
    // the code that it interrupted. A mark that is not above this frame is old and is overwritten: its update
    // ended with longjmp(). A limit: a handler is not recognised if it runs on an alternate stack with higher
    // addresses than the thread's own stack.
    is_nested_ = log.update_mark != nullptr && log.update_mark > top;
    if (!is_nested_) [[likely]] {
      log.update_mark = top;
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if ((session.is_changing.load(std::memory_order_relaxed) || log.is_retired) && !is_nested_) [[unlikely]] {
      follow_session(log, top);
    }
  }
  ~Update() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!is_nested_) [[likely]] {
      // No deferred operation is missed, because the mark is cleared before deferred_count is read. A handler
      // that runs before the mark is cleared has increased deferred_count. A handler that runs after that
      // counts its operation itself.
      log_.update_mark = nullptr;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (log_.deferred_count != 0) [[unlikely]] {
        count_all_deferred(log_);
      }
    }
  }
  Update(const Update&) = delete;
  Update& operator=(const Update&) = delete;
  // True if this update is made in a handler that interrupted another update of the same thread. In that case
  // only defer() may be called.
  bool is_nested() const noexcept { return is_nested_; }
  // Stores an operation of a handler, to be counted after the interrupted update. Takes no lock and allocates
  // no memory. If there is no room for it, the operation is dropped.
  void defer(uint64_t file, uint64_t name, const Operation& operation) noexcept;
  // Stores an operation on a descriptor that is not described. After the interrupted update the descriptor is
  // looked up in /proc. If it refers to another file by then, the operation is dropped. If operation.offset
  // is -1, the descriptor's position is used.
  void defer(int fd, const Operation& operation) noexcept;

 private:
  void defer(const ThreadLog::Deferred& deferred) noexcept;

  ThreadLog& log_;
  bool is_nested_;
};

// A cheaper Update, which does not check session.is_changing. The caller must know that log.update_mark is
// null, and must write only to memory that is mapped already. The session may have ended meanwhile, but its
// file stays mapped while a log refers to it.
class OuterUpdate {
 public:
  explicit OuterUpdate(ThreadLog& log) noexcept : log_(log) {
    log.update_mark = stack_top();
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~OuterUpdate() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    log_.update_mark = nullptr;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (log_.deferred_count != 0) [[unlikely]] {
      count_all_deferred(log_);
    }
  }
  OuterUpdate(const OuterUpdate&) = delete;
  OuterUpdate& operator=(const OuterUpdate&) = delete;

 private:
  ThreadLog& log_;
};

// Does the work of count() if the cached counters cannot be used. Possible reasons: the descriptor is not in
// the table; the counters belong to another file or are full; this is a handler that interrupted an Update.
[[gnu::noinline]] penstock_counters* count_slowly(ThreadLog& log, int fd,
                                                  const Operation& operation) noexcept;
// Counts the operation, and adds it as a segment. Called by count() if calls are traced (--trace).
[[gnu::noinline]] penstock_counters* count_and_record(ThreadLog& log, int fd, penstock_counters& counters,
                                                      const Operation& operation) noexcept;

inline uint64_t cache_tag(uint64_t serial, penstock_layer layer) noexcept {
  return serial * 8 + uint64_t(layer);
}
// The entry of the log's cache for this descriptor and layer. The entry may contain counters of another
// descriptor or layer, so the caller compares its tag (cache_tag()).
inline ThreadLog::Cached& cache_entry(ThreadLog& log, int fd, penstock_layer layer) noexcept {
  return log.cache[(unsigned(fd) + unsigned{layer} * 97U) % ThreadLog::kCacheEntries];
}

// After this many calls of one kind, new counters are started for the file, so that no counter overflows.
// kMostBriefCalls is the limit of brief counters, kMostOperations that of whole ones. Both are smaller than
// what the counters can hold, because handlers may still add calls after can_count() has returned true.
constexpr uint32_t kMostOperations = 1U << 31U;
constexpr uint32_t kMostBriefCalls = 192;
// The number of calls of this kind so far. Only for kinds that brief counters can count.
template <typename Counters>
[[gnu::always_inline]] inline uint32_t call_count(const Counters& c, penstock_call call) noexcept {
  switch (call) {
    case PENSTOCK_CALL_OPEN:
      return c.opens;
    case PENSTOCK_CALL_CLOSE:
      return c.closes;
    case PENSTOCK_CALL_READ:
      return c.reads;
    case PENSTOCK_CALL_STAT:
      return c.stats;
    case PENSTOCK_CALL_SEEK:
      return c.seeks;
    default:
      return c.other;
  }
}
inline uint32_t whole_call_count(const penstock_counters& c, penstock_call call) noexcept {
  switch (call) {
    case PENSTOCK_CALL_WRITE:
      return c.writes;
    case PENSTOCK_CALL_SYNC:
      return c.syncs;
    case PENSTOCK_CALL_MAP:
      return c.maps;
    default:
      return call_count(c, call);
  }
}
// Whether only whole counters can count this kind of call.
inline bool needs_whole_counters(penstock_call call) noexcept {
  return call == PENSTOCK_CALL_WRITE || call == PENSTOCK_CALL_SYNC || call == PENSTOCK_CALL_MAP;
}
// Whether the call may be added to these counters. If not, counters_of() makes further counters for the file.
inline bool can_count(const penstock_counters& c, penstock_call call) noexcept {
  if (c.form == PENSTOCK_BRIEF) [[likely]] {
    return !needs_whole_counters(call) && call_count(as_brief(c), call) < kMostBriefCalls;
  }
  return c.form != PENSTOCK_CONTINUED && whole_call_count(c, call) < kMostOperations;
}

// Counts an operation on a descriptor. Returns the counters to which it added the operation; they are valid
// until the next operation is counted. Returns null if the operation was not counted, or will be counted
// later (Update::defer()).
//
// The cached counters are those of this descriptor's file if their tag has the serial of the descriptor's
// description. That serial changes when no descriptor has the description any more. If another thread closes
// the descriptor after the check, the operation is still counted for the right file: the one on which it was
// made.
[[gnu::always_inline]] inline penstock_counters* count(ThreadLog& log, int fd,
                                                       const Operation& operation) noexcept {
  const Description* description = description_of(fd);
  const ThreadLog::Cached& cached = cache_entry(log, fd, operation.layer);
  penstock_counters* counters = cached.counters;
  if (description == nullptr ||
      cached.tag != cache_tag(description->serial.load(std::memory_order_relaxed), operation.layer) ||
      log.update_mark != nullptr || (counters != nullptr && !can_count(*counters, operation.call)))
      [[unlikely]] {
    const Operation copy = operation;
    return count_slowly(log, fd, copy);
  }
  if (counters == nullptr) [[unlikely]] {
    return nullptr;
  }
  if (segments_wanted()) [[unlikely]] {
    const Operation copy = operation;
    return count_and_record(log, fd, *counters, copy);
  }
  const OuterUpdate update(log);
  add_operation(*counters, operation);
  return counters;
}

// The caller holds an Update. Counts an operation on a file. Null if the session has no room; the operation
// then counts as dropped.
penstock_counters* count_of_file(ThreadLog& log, const FileRecord& file, const Operation& operation) noexcept;
// Returns the descriptor's counters to which a call of the kind `call` can be added; null if there are none.
// Used for a close, which is counted after the descriptor is closed, and for the time of fflush().
penstock_counters* current_counters(ThreadLog& log, int fd, penstock_layer layer,
                                    penstock_call call) noexcept;
// Returns the counters to which the close of a descriptor will be added; null if there are none. Also removes
// the descriptor from the table. Called before the close, because after it another thread may get the same
// number for another file.
penstock_counters* forget_before_close(ThreadLog& log, int fd) noexcept;
[[gnu::always_inline]] inline void count_in_counters(ThreadLog& log, penstock_counters& counters,
                                                     const Operation& operation) noexcept {
  Update update(log);
  if (update.is_nested()) [[unlikely]] {
    const Operation copy = operation;
    update.defer(counters.file, counters.name, copy);
    return;
  }
  add_operation(counters, operation);
  record_segment(log, counters.file, operation);
}

// Does what count() does for a read or a write, but builds no Operation on the common path.
template <penstock_call kCall>
[[gnu::always_inline]] inline void count_read_or_write(ThreadLog& log, int fd, penstock_layer layer,
                                                       int64_t offset, int64_t bytes, uint64_t begin,
                                                       uint64_t end) noexcept {
  const Description* description = description_of(fd);
  const ThreadLog::Cached& cached = cache_entry(log, fd, layer);
  penstock_counters* counters = cached.counters;
  if (description == nullptr ||
      cached.tag != cache_tag(description->serial.load(std::memory_order_relaxed), layer) ||
      log.update_mark != nullptr || (counters != nullptr && !can_count(*counters, kCall))) [[unlikely]] {
    count_slowly(
        log, fd,
        {.call = kCall, .layer = layer, .offset = offset, .length = bytes, .begin = begin, .end = end});
    return;
  }
  if (counters == nullptr) [[unlikely]] {
    return;
  }
  if (segments_wanted()) [[unlikely]] {
    count_and_record(
        log, fd, *counters,
        {.call = kCall, .layer = layer, .offset = offset, .length = bytes, .begin = begin, .end = end});
    return;
  }
  const OuterUpdate update(log);
  if constexpr (kCall == PENSTOCK_CALL_READ) {
    add_read(*counters, offset, bytes, begin, end);
  } else {
    add_write(*counters, offset, bytes, begin, end);
  }
}

// These two functions add bytes to the thread's totals. The kernel adds the same bytes to rchar or wchar of
// /proc/PID/io, for every kind of descriptor.
inline void add_kernel_read(ThreadLog& log, int64_t bytes) noexcept {
  log.totals->kernel_read += uint64_t(bytes);
}
inline void add_kernel_written(ThreadLog& log, int64_t bytes) noexcept {
  log.totals->kernel_written += uint64_t(bytes);
}

// Counts an operation on a name. `at` is the directory of a relative name (AT_FDCWD or a descriptor). If the
// operation has failed, it is counted only if this thread has counters for the file.
void count_path(ThreadLog& log, int at, const char* path, const Operation& operation,
                penstock_file_kind kind = PENSTOCK_REGULAR, int64_t size = -1) noexcept;
// Counts an open() or similar call, which made `fd` (-1: the call failed). The descriptor is described from
// now on, and its position is 0.
void count_open(ThreadLog& log, int at, const char* path, int flags, int fd,
                const Operation& operation) noexcept;
// Stores that a descriptor's file is not a regular file. The file was taken for a regular one when it was
// opened by name, but is a pipe, a socket or a device.
[[gnu::cold]] void note_not_regular(ThreadLog& log, int fd) noexcept;
// Makes the description of a descriptor from /proc, and returns it; null if that fails. In a handler that
// interrupted an update of its own thread, only the table of descriptors is read.
[[gnu::cold]] Description* description_from_proc(ThreadLog& log, int fd) noexcept;
// Returns the description of a descriptor, from the table or from /proc; null if neither has it. Called in
// wrappers, in any thread. It may wait in Update.
inline Description* known_description(ThreadLog& log, int fd) noexcept {
  Description* description = description_of(fd);
  return description != nullptr ? description : description_from_proc(log, fd);
}

}  // namespace penstock::interpose
