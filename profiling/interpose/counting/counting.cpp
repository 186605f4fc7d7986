// The rare paths of counting: names, descriptors that are not known, operations of signal handlers, and the
// change from one session to the next.
//
// Threads: the thread that owns the log (ThreadLog, thread_log.hpp), inside a wrapper.
// Locks: none is held on entry, with two exceptions: the lock of a Ring or of AsyncOperations if asynchronous
// I/O is counted, and Control (recording.hpp) when recording ends. Code here takes file_lock
// (session_file.hpp) when the log needs a new block of the session's file.
// Memory: nothing here calls malloc, stdio or the locale. System calls are made directly (system_call()), so
// they are not counted and do not change errno.
// Signals: if a handler interrupts an Update of its own thread, its operation is deferred (Update::defer()).
// Exceptions: an operation on a name counts as dropped, and a close is not counted.
#include "profiling/interpose/counting/counting.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/counting/thread_log.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

namespace {

constexpr std::array<SizeBucket, 65> make_size_buckets() {
  constexpr uint64_t kBucketLimits[PENSTOCK_SIZE_BUCKETS - 1] = {
      100, 1024, 10240, 102400, 1U << 20U, 4194304, 10485760, 104857600, 1073741824};
  std::array<SizeBucket, 65> buckets;
  size_t bucket = 0;
  for (size_t width = 0; width <= 64; ++width) {
    buckets[width] = {.limit = ~uint64_t{0}, .bucket = bucket};
    // If the bucket's limit has `width` binary digits, larger sizes of this width are in the next bucket.
    if (bucket < PENSTOCK_SIZE_BUCKETS - 1 && size_t(std::bit_width(kBucketLimits[bucket])) == width) {
      buckets[width].limit = kBucketLimits[bucket];
      bucket += 1;
    }
  }
  return buckets;
}

}  // namespace

constinit const std::array<SizeBucket, 65> size_buckets = make_size_buckets();

// Waits while another thread changes the session, and then moves the log to the new session. Called by the
// constructor of an outermost Update, after it has set `update_mark`.
// Order: `update_mark` is cleared during the wait, because the thread that changes the session waits until no
// log is marked. Then it is set again (sequentially consistent) before session.is_changing is read again. The
// comment of class Update explains why.
// The thread that changes the session never calls this while session.is_changing is set: it makes no Update
// then, and it has all signals blocked.
void follow_session(ThreadLog& log, const char* top) noexcept {
  while (session.is_changing.load(std::memory_order_seq_cst)) {
    log.update_mark = nullptr;
    while (session.is_changing.load(std::memory_order_acquire)) {
      system_call(SYS_sched_yield);
    }
    __atomic_store_n(&log.update_mark, top, __ATOMIC_SEQ_CST);
  }
  if (log.is_retired && log.owner != nullptr && !log.is_ending &&
      session.state.load(std::memory_order_acquire) == SessionState::running) {
    begin_in_session(log);
  }
}

// Stores an operation in `deferred`, to be counted later. Called in a handler that interrupted an update of
// its own thread. Another handler may interrupt this one, so an entry is claimed by an atomic
// compare-and-exchange before it is written. count_all_deferred() reads the entries after all handlers have
// returned.
void Update::defer(const ThreadLog::Deferred& deferred) noexcept {
  uint32_t index = log_.deferred_count;
  do {
    if (index >= ThreadLog::kMaxDeferred) {
      count_drop(session.header->dropped_operations);
      return;
    }
  } while (!__atomic_compare_exchange_n(&log_.deferred_count, &index, index + 1, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  log_.deferred[index] = deferred;
}

void Update::defer(uint64_t file, uint64_t name, const Operation& operation) noexcept {
  defer({.operation = operation, .file = file, .name = name});
}

// Stores an operation on a descriptor, to be counted later. Called in a handler that interrupted an update of
// its own thread. That update may be using log.name and the file table, so the descriptor's name is looked up
// only after the update. Device and inode are stored to detect whether the descriptor's number refers to
// another file by then.
void Update::defer(int fd, const Operation& operation) noexcept {
  struct stat status {};
  if (!inspect(fd, "", status)) {
    count_drop(session.header->unnamed);
    return;
  }
  ThreadLog::Deferred deferred{.operation = operation,
                               .by_descriptor = true,
                               .fd = fd,
                               .device = status.st_dev,
                               .inode = status.st_ino};
  const bool transfers_data = operation.call == PENSTOCK_CALL_READ || operation.call == PENSTOCK_CALL_WRITE;
  if (transfers_data && operation.offset < 0) {
    // The call has moved the position already, so its bytes begin `length` before the present position.
    const long end_offset = system_call(SYS_lseek, fd, 0, SEEK_CUR);
    deferred.operation.offset = end_offset < operation.length ? 0 : end_offset - operation.length;
  }
  defer(deferred);
}

namespace {

// Counts an operation on a descriptor, and returns the counters. Null if the descriptor has no file (a pipe,
// for example) or is not in /proc. Null also if the session has no room; in that case the operation counts as
// dropped. The caller holds an Update.
penstock_counters* count_of_descriptor(ThreadLog& log, int fd, const Operation& operation) noexcept {
  penstock_counters* c = find_counters(log, fd, operation.layer, operation.call);
  if (c == nullptr) {
    const Description* description = description_of(fd);
    if (description != nullptr && description->file != 0) {
      count_drop(session.header->dropped_operations);
    }
    return nullptr;
  }
  add_operation(*c, operation);
  record_segment(log, c->file, operation);
  return c;
}

void count_deferred(ThreadLog& log, const ThreadLog::Deferred& deferred) noexcept {
  const Operation& operation = deferred.operation;
  if (deferred.by_descriptor) {
    struct stat status {};
    // A retired log writes to the file of an ended session, so no description may be made with this log: the
    // name would be in the old file, but other threads would look for it in the current file.
    if (!log.is_retired && inspect(deferred.fd, "", status) && status.st_dev == deferred.device &&
        status.st_ino == deferred.inode) {
      count_of_descriptor(log, deferred.fd, operation);
    } else {
      count_drop(session.header->dropped_operations);
    }
    return;
  }
  count_of_file(log, {.file = deferred.file, .name = deferred.name}, operation);
}

}  // namespace

// Counts an operation on a file. The caller holds an Update, because this changes the log's file table and
// blocks.
penstock_counters* count_of_file(ThreadLog& log, const FileRecord& file,
                                 const Operation& operation) noexcept {
  penstock_counters* c = counters_of(log, file, operation.layer, operation.call, operation.begin);
  if (c == nullptr) {
    count_drop(session.header->dropped_operations);
    return nullptr;
  }
  add_operation(*c, operation);
  record_segment(log, file.file, operation);
  return c;
}

// Counts the operations that handlers deferred. Called by the destructors of Update and OuterUpdate, after
// they have cleared the mark. This function makes an Update of its own, so handlers that run meanwhile only
// add entries after those that are read here. deferred_count is set to 0 only if it did not change meanwhile;
// otherwise the loop counts the new entries too.
void count_all_deferred(ThreadLog& log) noexcept {
  const Update update(log);  // if this moves the log to another session, begin_in_session() drops the entries
  uint32_t count = log.deferred_count;
  for (uint32_t i = 0; !update.is_nested() && count != 0;) {
    for (; i < count; ++i) {
      count_deferred(log, log.deferred[i]);
    }
    if (__atomic_compare_exchange_n(&log.deferred_count, &count, 0U, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      return;
    }
  }
}

// Counts an operation, and records it as a segment. Called by count() if calls are traced. If the segment
// does not fit in the current block, count_slowly() does the work: a new block needs an Update, because the
// session may have changed. Otherwise the cheaper OuterUpdate is enough.
penstock_counters* count_and_record(ThreadLog& log, int fd, penstock_counters& counters,
                                    const Operation& operation) noexcept {
  if (free_bytes(log.segments) < sizeof(penstock_segment)) [[unlikely]] {
    return count_slowly(log, fd, operation);
  }
  const OuterUpdate update(log);
  add_operation(counters, operation);
  add_segment(log, counters.file, operation);
  return &counters;
}

// Counts an operation on a descriptor. Called by count(), count_read_or_write() and count_and_record(), and
// after failed transfers, also in handlers. In a handler that interrupted an update of its own thread, the
// log's table and cache may be half changed. So such a handler only finds the descriptor's description, which
// needs no lock, and defers the operation.
penstock_counters* count_slowly(ThreadLog& log, int fd, const Operation& operation) noexcept {
  Update update(log);
  if (update.is_nested()) {
    const Description* description = description_of(fd);
    if (description == nullptr) {
      update.defer(fd, operation);
    } else if (description->file != 0) {
      update.defer(description->file, description->name, operation);
    }
    return nullptr;
  }
  return count_of_descriptor(log, fd, operation);
}

// Finds the counters to which a close will be added, and forgets the descriptor. Called by close_and_count(),
// before the program's call. In a handler that interrupted an update of its own thread, the update may be
// using log.spare_description. So in such a handler forget() gives the description back to the shared lists,
// and null is returned.
penstock_counters* forget_before_close(ThreadLog& log, int fd) noexcept {
  const Description* description = description_of(fd);
  if (description == nullptr) [[unlikely]] {
    return nullptr;
  }
  Update update(log);
  if (update.is_nested()) [[unlikely]] {
    forget(fd);
    return nullptr;
  }
  const ThreadLog::Cached& cached = cache_entry(log, fd, PENSTOCK_POSIX);
  penstock_counters* c = cached.counters;
  if (c == nullptr || !can_count(*c, PENSTOCK_CALL_CLOSE) ||
      cached.tag != cache_tag(description->serial.load(std::memory_order_relaxed), PENSTOCK_POSIX))
      [[unlikely]] {
    c = find_counters(log, fd, PENSTOCK_POSIX, PENSTOCK_CALL_CLOSE);
  }
  log.spare_description.forget(fd);
  return c;
}

namespace {

// Corrects the kind that is stored with a file's name, if the file was taken for a regular one. Called within
// an update. The store is atomic, because other processes read the session's file at the same time. Does
// nothing for a retired log: its offsets are those of the previous session file, but at_offset() uses the
// current one.
[[gnu::cold]] void store_file_kind(const ThreadLog& log, const penstock_counters& c,
                                   penstock_file_kind kind) noexcept {
  if (c.name == 0 || log.is_retired) {
    return;
  }
  auto* name = at_offset<penstock_name>(c.name);
  if (name->kind == PENSTOCK_REGULAR) {
    __atomic_store_n(&name->kind, uint16_t(kind), __ATOMIC_RELAXED);
  }
}

// Counts an operation on a name. The caller holds an Update. For a failed operation no new counters are made.
// Otherwise a program that tries many names would fill the session with files that do not exist.
void count_name(ThreadLog& log, const AbsoluteName& name, const Operation& operation, penstock_file_kind kind,
                int64_t size) noexcept {
  penstock_counters* c =
      operation.failed != 0
          ? log.files.find(name.file, operation.layer)
          : counters_of(log, {.file = name.file, .text = name.text, .length = name.length, .kind = kind},
                        operation.layer, operation.call, operation.begin);
  if (c == nullptr) {
    if (operation.failed != 0) {
      log.totals->missed += 1;
      log.totals->missed_ticks += operation.end - operation.begin;
    }
    return;
  }
  add_operation(*c, operation);
  if (kind != PENSTOCK_REGULAR) {
    store_file_kind(log, *c, kind);
  } else if (size > 0) {
    note_size(*c, uint64_t(size));
  }
  record_segment(log, name.file, operation);
}

}  // namespace

// Counts an operation on a name. Called after the program's call. `path` is the program's pointer. After
// EFAULT it is not read, because the kernel could not read it. In a handler that interrupted an update of its
// own thread, the operation counts as dropped, because the update may be using log.name.
void count_path(ThreadLog& log, int at, const char* path, const Operation& operation, penstock_file_kind kind,
                int64_t size) noexcept {
  if (operation.failed == EFAULT) {
    return;
  }
  Update update(log);
  if (update.is_nested()) {
    count_drop(session.header->dropped_operations);
    return;
  }
  note_moment(operation.end);
  AbsoluteName& name = log.name;
  if (absolute_name(at, path, name)) {
    count_name(log, name, operation, kind, size);
  }
}

// Counts an open, and describes the new descriptor. Called after the program's call, which made `fd`. The
// description is filled before describe() publishes it to other threads. If no description can be made, `fd`
// is forgotten: it might still have the description of an earlier file whose close was not seen.
void count_open(ThreadLog& log, int at, const char* path, int flags, int fd,
                const Operation& operation) noexcept {
  if (operation.failed == EFAULT) [[unlikely]] {
    return;
  }
  Update update(log);
  if (update.is_nested()) [[unlikely]] {
    count_drop(session.header->dropped_operations);
    forget(fd);
    return;
  }
  note_moment(operation.end);
  AbsoluteName& name = log.name;
  bool is_named = absolute_name(at, path, name);
  if (fd < 0) [[unlikely]] {
    if (is_named) {
      count_name(log, name, operation, PENSTOCK_REGULAR, -1);
    }
    return;
  }
#ifdef O_TMPFILE
  const bool is_nameless = (flags & O_TMPFILE) == O_TMPFILE;  // O_TMPFILE: `path` is only a directory
#else
  const bool is_nameless = false;
#endif
  if (!is_named || name.had_parent_parts || is_nameless || names_descriptor(name)) [[unlikely]] {
    is_named = name_of_descriptor(fd, name) && name.text[0] == '/';
  }
  if (is_named) [[likely]] {
    log.files.prefetch(name.file, operation.layer);
  }
  Description* description = log.spare_description.make();
  if (description == nullptr) [[unlikely]] {
    forget(fd);
    count_drop(session.header->dropped_operations);
    return;
  }
  description->kind = (flags & O_DIRECTORY) != 0 && !is_nameless ? PENSTOCK_DIRECTORY : PENSTOCK_REGULAR;
  description->appends = (flags & O_APPEND) != 0;
  penstock_counters* c = nullptr;
  if (is_named) [[likely]] {
    description->file = name.file;
    const bool opened_to_write = (flags & O_ACCMODE) != O_RDONLY;
    c = counters_of(log,
                    {.file = name.file,
                     .text = name.text,
                     .length = name.length,
                     .kind = static_cast<penstock_file_kind>(description->kind)},
                    operation.layer, opened_to_write ? PENSTOCK_CALL_WRITE : operation.call, operation.begin);
    if (c == nullptr) [[unlikely]] {
      count_drop(session.header->dropped_operations);
    } else {
      description->name = c->name;
      if (description->kind == PENSTOCK_DIRECTORY) [[unlikely]] {
        store_file_kind(log, *c, PENSTOCK_DIRECTORY);
      }
      add_operation(*c, operation);
      record_segment(log, name.file, operation);
    }
  }
  // If there was no room for counters, the tag is 0. No description has that tag, so the next operation on
  // `fd` tries again.
  ThreadLog::Cached& entry = cache_entry(log, fd, operation.layer);
  entry.counters = c;
  entry.tag = c == nullptr && description->file != 0
                  ? 0
                  : cache_tag(description->serial.load(std::memory_order_relaxed), operation.layer);
  describe(fd, description);
}

// Returns the descriptor's counters to which a call of the kind `call` can be added. Called by the wrappers
// of fclose(), fflush() and closedir(). Returns null in a handler that interrupted an update of its own
// thread.
penstock_counters* current_counters(ThreadLog& log, int fd, penstock_layer layer,
                                    penstock_call call) noexcept {
  Update update(log);
  return update.is_nested() ? nullptr : find_counters(log, fd, layer, call);
}

namespace {

// Whether the descriptor still refers to the file that the description names. The file may have another path
// by now. The caller holds an Update, because this uses log.name. It makes up to three system calls, none of
// which affects the program.
bool still_refers_to(ThreadLog& log, int fd, const Description& description) noexcept {
  AbsoluteName& current_name = log.name;
  if (name_of_descriptor(fd, current_name) && current_name.file == description.file) {
    return true;
  }
  if (description.name == 0 || log.is_retired) {
    return false;
  }
  const auto* name = at_offset<penstock_name>(description.name);
  if (name->length >= AbsoluteName::kMostBytes) {
    return false;
  }
  memcpy(current_name.text, name + 1, name->length);
  current_name.text[name->length] = 0;
  struct stat open_status {};
  struct stat named_status {};
  return inspect(fd, "", open_status) && inspect(AT_FDCWD, current_name.text, named_status) &&
         open_status.st_dev == named_status.st_dev && open_status.st_ino == named_status.st_ino;
}

}  // namespace

// Stores that the descriptor's file is not a regular file. Called after fstat() has shown this. Does nothing
// in a handler that interrupted an update of its own thread.
void note_not_regular(ThreadLog& log, int fd) noexcept {
  const Update update(log);
  Description* description = description_of(fd);
  if (update.is_nested() || description == nullptr || description->kind != PENSTOCK_REGULAR) {
    return;
  }
  if (!still_refers_to(log, fd, *description)) {
    forget(fd);  // a call without a wrapper has given the number to another file
    return;
  }
  description->kind = PENSTOCK_OTHER_FILE;
  if (const penstock_counters* c = find_counters(log, fd, PENSTOCK_POSIX, PENSTOCK_CALL_STAT); c != nullptr) {
    store_file_kind(log, *c, PENSTOCK_OTHER_FILE);
  }
}

// Returns the description of a descriptor, and makes it from /proc if there is none. May take file_lock for a
// new block. In a handler that interrupted an update of its own thread, it only looks in the table of
// descriptors.
Description* description_from_proc(ThreadLog& log, int fd) noexcept {
  if (fd < 0) {
    return nullptr;
  }
  const Update update(log);
  if (!update.is_nested()) {
    // Makes the description, if there is none.
    find_counters(log, fd, PENSTOCK_POSIX, PENSTOCK_CALL_OTHER);
  }
  return description_of(fd);
}

}  // namespace penstock::interpose
