// Begins and ends a session's file.
//
// Threads: session_lifetime.hpp names the callers of each function.
// Locks: begin_session(), begin_kernel_counters(), end_session() and add_event() take file_lock.
// open_session() needs no lock, because it runs in the library's constructor, when no other thread writes to
// the session. begin_forked_session() runs in a child's first counted call, under begin_lock, for which the
// child's other threads wait. No lock is taken under file_lock.
// Memory: the program's heap is not used. A limit: getenv() is called when a file begins. If another thread
// of the program changes the environment at that moment, the two threads race.
// Signals: if a handler's own thread holds file_lock, the handler does not wait (LockGuard::has_lock()).
// Forks: if a child of a wrapped fork cannot make a file of its own, it records that in its parent's file,
// and nothing else there (leave_session_of_parent(), begin_forked_session(), note_lost_child()). A child of
// an unwrapped fork gets no new block, but still writes to existing blocks of its parent's file.
// Crash: the file is mapped, so after the process is killed the file still has what was counted.
#include "profiling/interpose/writer/session_lifetime.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "profiling/interpose/writer/own_process.hpp"
#include "profiling/interpose/writer/session_file.hpp"
#include "profiling/interpose/writer/system.hpp"
#include "profiling/memory_fence.hpp"

namespace penstock::interpose {

namespace {

void copy_text(char* to, size_t room, const char* from) noexcept {
  const size_t length = strnlen(from, room - 1);
  memcpy(to, from, length);
  to[length] = 0;
}

// Returns the number in the first of these environment variables that is set and not empty; 0 if none is.
// strtoul() is safe here: it allocates nothing and takes no lock.
uint32_t number_from_environment(const char* name, const char* other_name) noexcept {
  for (const char* tried_name : {name, other_name}) {
    if (const char* value = getenv(tried_name); value != nullptr && *value != 0) {
      return uint32_t(strtoul(value, nullptr, 10));
    }
  }
  return 0;
}

// The trace bit of a file: 1 if calls are recorded as segments. Another process may write the bit at any
// time. A relaxed load is enough, because no other data depends on the bit.
uint32_t trace_bit_of(const penstock_session_header& header) noexcept {
  return __atomic_load_n(&header.control, __ATOMIC_RELAXED) & 1U;
}

// Whether the new file takes over the trace bit of the previous file. Within one process the new file always
// takes it over. A forked child takes over its parent's bit, even if the bit was switched after the fork. It
// does not if the parent has started another file, ended recording or executed another program since then. If
// the parent stores its state at this moment, either result is right.
bool may_inherit_trace_bit(const penstock_session_header* previous, bool forked) noexcept {
  if (previous == nullptr || !forked) {
    return previous != nullptr;
  }
  const uint32_t state = __atomic_load_n(&previous->state, __ATOMIC_RELAXED);
  return state == PENSTOCK_RUNNING || state == PENSTOCK_ENDED;
}

// Another process may switch the previous file's trace bit after it was copied and before the new file is
// visible. In that case this function switches the new file's bit as well. It misses no such switch: the
// other process writes the bit (pwrite()) and then searches for new files. This process makes the new file
// visible (`magic`), and after a full fence it reads the previous file's bit again. So at least one of the
// two processes sees what the other one wrote. If the other process has already switched the new file's bit,
// the exchange below does not change it.
void adopt_late_trace_bit(const penstock_session_header& previous, uint32_t copied_bit) noexcept {
  memory_fence(std::memory_order_seq_cst);
  const uint32_t current_bit = trace_bit_of(previous);
  if (current_bit != copied_bit) {
    __atomic_compare_exchange_n(&session.header->control, &copied_bit, current_bit, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
  }
}

// Fills the header of a new file. `control` is stored before session.header, because other threads that are
// in a call may read `control` at once (segments_wanted()). `magic` is stored after all other members,
// because readers take a file with `magic` for a session. If the process is killed before that, readers
// ignore the file.
void fill_header(penstock_session_header& h, const penstock_session_header* previous, bool forked,
                 bool segments) noexcept {
  const bool inherits_trace_bit = may_inherit_trace_bit(previous, forked);
  const uint32_t control = inherits_trace_bit ? trace_bit_of(*previous) : segments ? 1 : 0;
  h.control = control;
  __atomic_store_n(&session.header, &h, __ATOMIC_RELEASE);
  h.version = PENSTOCK_SESSION_VERSION;
  h.byte_order = PENSTOCK_SESSION_BYTE_ORDER;
  h.header_bytes = PENSTOCK_HEADER_BYTES;
  h.granule = PENSTOCK_BLOCK_GRANULE;
  h.pid = uint32_t(system_call(SYS_getpid));
  const ProcessIdentity identity = process_identity();
  h.process_start = identity.start;
  h.kernel_pid = identity.kernel_pid;
  h.pid_namespace = identity.pid_namespace;
  h.parent_pid = uint32_t(system_call(SYS_getppid));
  h.parent_namespace = identity.pid_namespace;
  if (h.parent_pid == 0 && forked && previous != nullptr) {  // the parent is in another PID namespace
    h.parent_pid = previous->pid;
    h.parent_namespace = previous->pid_namespace;
  }
  h.clock = session.uses_tsc ? PENSTOCK_CLOCK_TSC : PENSTOCK_CLOCK_MONOTONIC;
  h.forked = forked ? 1 : 0;
  h.begin_realtime_ns = nanoseconds(CLOCK_REALTIME);
  h.begin = penstock_moment{.ticks = ticks(), .monotonic_ns = nanoseconds(CLOCK_MONOTONIC)};
  h.later[0] = h.later[1] = h.begin;
  h.ticks_per_s = file.ticks_per_s;
  h.file_end = PENSTOCK_HEADER_BYTES;
  h.rank = number_from_environment("OMPI_COMM_WORLD_RANK", "PMI_RANK");
  h.ranks = number_from_environment("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
  gethostname(h.host, sizeof(h.host) - 1);
  system_call(SYS_readlinkat, AT_FDCWD, as_argument("/proc/self/exe"), as_argument(h.executable),
              sizeof(h.executable) - 1);
  system_call(SYS_getcwd, as_argument(h.directory), sizeof(h.directory));
  h.command_bytes = uint32_t(read_text("/proc/self/cmdline", h.command, sizeof(h.command)));
  // kernel_begin is what readers subtract from the kernel's counters: the I/O that does not belong to the
  // session. In a forked process the kernel counts from the fork on, so kernel_begin is only this library's
  // own I/O.
  file.own_read_bytes = forked ? file.own_read_bytes : 0;
  h.kernel_begin_is_known = forked || read_kernel_io(h.kernel_begin) ? 1 : 2;
  if (!forked) {
    h.kernel_begin.syscr += 2;
  }
  h.kernel_begin.rchar += file.own_read_bytes;
  h.kernel_begin.wchar += forked ? file.own_written_bytes : 0;
  if (inherits_trace_bit) {
    h.inherited_from = forked ? previous->pid : previous->inherited_from;
  }
  h.trace_limit = previous != nullptr ? previous->trace_limit : trace_limit_from_environment();
  // Stored last: from now on readers take the file for a session.
  memcpy(h.magic, PENSTOCK_SESSION_MAGIC, sizeof(h.magic));
  if (inherits_trace_bit) {
    adopt_late_trace_bit(*previous, control);
  }
}

// The session's folder, from keep_access() on; an inode of 0 before that.
dev_t folder_device = 0;
ino_t folder_inode = 0;

// False if the folder's name leads to another folder now, or to none, because the root has changed.
bool is_folder_in_reach() noexcept {
  struct stat status {};
  return folder_inode == 0 ||
         (system_call(kStatOfName, AT_FDCWD, as_argument(session.folder), as_argument(&status), 0) == 0 &&
          status.st_dev == folder_device && status.st_ino == folder_inode);
}

// Adds this process, a forked child, to those that its parent's file names as lost. The file is mapped, so
// this needs no rights and no system call. Several children may do this at the same time.
void note_lost_child(penstock_session_header& parent) noexcept {
  const long pid = system_call(SYS_getpid);
  const uint32_t index = __atomic_fetch_add(&parent.lost_children, 1U, __ATOMIC_RELAXED);
  if (index < PENSTOCK_LOST_CHILDREN) {
    parent.lost[index] = {.pid = pid > 0 ? uint32_t(pid) : 0, .failed = uint32_t(session_failure())};
  }
}

// Makes a new file and its first mapping. `previous` is the header, still mapped, of the file that the new
// file continues; null: it continues none. `forked` is true in a fork's child, where `previous` is the
// parent's file. If `previous` is null, `segments` says whether segments are recorded at first. The caller
// sets session.state. If other threads run, the caller holds file_lock. After an error session.base is the
// old mapping again, and the old file is unchanged.
bool begin_file(const penstock_session_header* previous, bool forked, bool segments) noexcept {
  file.bytes = 0;
  file.own_read_bytes = 0;
  file.own_written_bytes = 0;
  file.begin_read_bytes = 0;
  file.unflushed_bytes = 0;
  file.event_block = nullptr;
  file.segment_bytes = file.oldest_full_block = file.newest_full_block = 0;
  char* const old_base = session.base;
  file.size_limit = bytes_from_environment("PENSTOCK_PROFILE_LIMIT", ~uint64_t{0});
  file_errno = 0;
  if (is_sealed.load(std::memory_order_relaxed)) {
    file_errno = EPERM;
    return false;
  }
  if (!is_folder_in_reach()) {
    file_errno = ENOENT;
    return false;
  }
  if (!reserve_addresses()) {
    file_errno = ENOMEM;
    return false;
  }
  snprintf(file.path, sizeof(file.path), "%s/%ld-%lld" PENSTOCK_SESSION_SUFFIX, session.folder,
           system_call(SYS_getpid), static_cast<long long>(nanoseconds(CLOCK_MONOTONIC)));
  if (!grow_to(kInitialFileBytes, O_CREAT | O_EXCL)) {
    system_call(SYS_unlinkat, AT_FDCWD, as_argument(file.path), 0);
    system_call(SYS_munmap, as_argument(session.base), long(file.reserved_bytes));
    session.base = old_base;
    return false;
  }
  file.kept_file.close();
  if (forked) {
    file.kept_kernel_io.close();  // it is the parent's
  }
  fill_header(*reinterpret_cast<penstock_session_header*>(session.base), previous, forked, segments);
  return true;
}

}  // namespace

// Whether the environment asks for segments (PENSTOCK_PROFILE_TRACE). Takes no lock.
bool wants_segments() noexcept {
  const char* value = getenv("PENSTOCK_PROFILE_TRACE");
  return value != nullptr && *value == '1';
}

int session_failure() noexcept {
  return file_errno != 0 ? file_errno : ENOSPC;
}

// Begins the session of a program that was started with the library. Called in the library's constructor,
// when the program usually has one thread. So errno and snprintf() may be used freely. A failure is not
// printed, because stderr is the program's.
void open_session() noexcept {
  const char* folder = getenv("PENSTOCK_PROFILE_SESSION");
  if (folder == nullptr || *folder != '/' || strlen(folder) >= sizeof(session.folder)) {
    return;
  }
  copy_text(session.folder, sizeof(session.folder), folder);
  file.ticks_per_s = start_ticks();
  if (begin_file(nullptr, false, wants_segments())) {
    session.state.store(SessionState::running, std::memory_order_release);
  }
}

bool has_kept_access() noexcept {
  return folder_inode != 0;
}

bool may_lose_program() noexcept {
  const auto is_limited = [](int kind, uint64_t least) {
    rlimit limit{};
    return system_call(SYS_prlimit64, 0, kind, 0, as_argument(&limit)) == 0 && limit.rlim_cur < least;
  };
  struct statfs status {};
  return has_kept_access() || is_limited(RLIMIT_FSIZE, kInitialFileBytes) ||
         is_limited(RLIMIT_NOFILE, STDERR_FILENO + 2) || is_limited(RLIMIT_AS, 16 * kLeastReservedBytes) ||
         system_call(SYS_faccessat, AT_FDCWD, as_argument(session.folder), W_OK | X_OK) != 0 ||
         (system_call(SYS_statfs, as_argument(session.folder), as_argument(&status)) == 0 &&
          status.f_blocks != 0 &&
          uint64_t(status.f_bavail) * uint64_t(status.f_bsize) < 2 * kInitialFileBytes);
}

void keep_access(bool seals) noexcept {
  const LockGuard guard(file_lock);
  if (!guard.has_lock() || session.state.load(std::memory_order_acquire) != SessionState::running ||
      !is_own_session()) {
    return;
  }
  if (const uint32_t degree = seals ? 2 : 1; session.header->gave_up_rights < degree) {
    session.header->gave_up_rights = degree;
  }
  struct stat status {};
  if (folder_inode == 0 &&
      system_call(kStatOfName, AT_FDCWD, as_argument(session.folder), as_argument(&status), 0) == 0) {
    folder_device = status.st_dev;
    folder_inode = status.st_ino;
  }
  if (file.kept_file.get() < 0) {
    file.kept_file.keep(system_call(SYS_openat, AT_FDCWD, as_argument(file.path), O_RDWR | O_CLOEXEC));
  }
  if (file.kept_kernel_io.get() < 0) {
    file.kept_kernel_io.keep(
        system_call(SYS_openat, AT_FDCWD, as_argument("/proc/self/io"), O_RDONLY | O_CLOEXEC));
  }
  constexpr uint64_t kRoomBytes = 1U << 20U;
  if (seals && file.bytes - session.header->file_end < kRoomBytes) {
    grow_to(file.bytes + kRoomBytes, 0);
  }
}

// Begins a file, and begins to record into it. Called by the thread that holds Control (the lock for changing
// what is recorded, recording.hpp), while session.is_changing holds back the updates of all other threads.
// The state `running` is stored last, because from then on threads may begin logs in this file.
bool begin_session(const char* folder, penstock_start_reason reason, bool segments,
                   const penstock_session_header* previous) noexcept {
  if (file.ticks_per_s == 0) {
    file.ticks_per_s = start_ticks();
  }
  const LockGuard guard(file_lock);
  copy_text(session.folder, sizeof(session.folder), folder);
  if (!guard.has_lock() || !begin_file(previous, false, segments)) {
    return false;
  }
  session.header->begun = reason;
  if (previous != nullptr && previous->kernel_end_known != 0) {
    session.header->kernel_begin = previous->kernel_end;
    session.header->kernel_begin.rchar += file.begin_read_bytes;
    session.header->kernel_begin.wchar += file.own_written_bytes;
  }
  session.state.store(SessionState::running, std::memory_order_release);
  return true;
}

namespace {

struct CountedBytes {
  uint64_t read = 0;
  uint64_t written = 0;
};
// What all threads have counted of what the kernel counts as well.
CountedBytes counted_bytes() noexcept {
  CountedBytes sum;
  const uint64_t end = session.header->file_end;
  for (uint64_t at = PENSTOCK_HEADER_BYTES; at < end;) {
    const auto* block = at_offset<penstock_block>(at);
    const auto* threads = reinterpret_cast<const penstock_thread*>(block + 1);
    const uint64_t entries = block->kind == PENSTOCK_BLOCK_THREADS ? block->used / sizeof(*threads) : 0;
    for (uint64_t i = 0; i < entries; ++i) {
      sum.read += threads[i].kernel_read;
      sum.written += threads[i].kernel_written;
    }
    at += block->bytes;
  }
  return sum;
}

}  // namespace

// Stores the kernel's I/O counters at the start of the session (kernel_begin). Threads may have counted calls
// since recording began. The bytes of these calls belong to the session, so they are subtracted from the
// kernel's counters. Called by the holder of Control, while session.is_changing is set. A limit: a thread
// adds to its totals without an Update (add_kernel_read()), so a call that runs at this moment may be in the
// kernel's counters and not yet in the totals.
void begin_kernel_counters() noexcept {
  const LockGuard guard(file_lock);
  penstock_kernel_io io{};
  file.own_read_bytes = 0;
  if (!guard.has_lock() || !read_kernel_io(io)) {
    session.header->kernel_begin_is_known = 2;
    return;
  }
  session.header->kernel_begin_is_known = 1;
  io.rchar += file.own_read_bytes;
  io.syscr += 2;
  const CountedBytes counted = counted_bytes();
  io.rchar -= counted.read;
  io.wchar -= counted.written;
  session.header->kernel_begin = io;
}

namespace {

// Set by leave_session_of_parent() and read once by begin_forked_session().
bool forked_between_files = false;  // at the fork the parent was switching from one file to the next
bool is_beginning_file = false;     // a thread is in begin_forked_session()

}  // namespace

// Keeps a fork's child from writing to its parent's file. Called in the child while it has one thread; so no
// lock is taken, and a relaxed store is enough. The parent's file stays mapped until begin_forked_session(),
// because it has the names of descriptors. The parent may itself be a child that has not started its file
// yet, or whose other thread was beginning it at the fork.
void leave_session_of_parent() noexcept {
  file_lock.reset();
  const SessionState state = session.state.load(std::memory_order_relaxed);
  const bool was_forked_between = state == SessionState::forked && forked_between_files;
  forked_between_files =
      was_forked_between || is_beginning_file || session.is_changing.load(std::memory_order_relaxed);
  is_beginning_file = false;
  if (state == SessionState::off) {
    return;
  }
  session.state.store(SessionState::forked, std::memory_order_relaxed);
}

// Begins the file of a fork's child. Called in the child's first counted call, under begin_lock, in any of
// its threads. The child's other threads wait for begin_lock. That first call may be made in a handler or
// inside malloc, so the heap is not used.
// Order: the parent's file is unmapped after copy_names() has read it. The state is stored last, because from
// then on the other threads use the new file.
bool begin_forked_session(void (*copy_names)(const char* parents_base)) noexcept {
  // If the parent was switching files at the fork, session.base and file.reserved_bytes may belong to
  // different files. In that case nothing is copied and nothing is unmapped.
  is_beginning_file = true;
  char* parents_base = forked_between_files ? nullptr : session.base;
  const uint64_t parents_bytes = file.reserved_bytes;
  const bool has_started =
      begin_file(forked_between_files ? nullptr : session.header, true, wants_segments());
  if (has_started) {
    copy_names(parents_base);
  } else if (parents_base != nullptr) {
    note_lost_child(*reinterpret_cast<penstock_session_header*>(parents_base));
  }
  if (parents_base != nullptr) {
    system_call(SYS_munmap, as_argument(parents_base), long(parents_bytes));
  }
  is_beginning_file = false;
  session.state.store(has_started ? SessionState::running : SessionState::off, std::memory_order_release);
  return has_started;
}

void give_up_forked_session() noexcept {
  SessionState expected = SessionState::forked;
  if (session.state.compare_exchange_strong(expected, SessionState::off) && !forked_between_files) {
    file_errno = is_sealed.load(std::memory_order_relaxed) ? EPERM : ENOMEM;
    note_lost_child(*session.header);
  }
}

void note_unflushed_bytes(uint64_t bytes) noexcept {
  file.unflushed_bytes = bytes;
}

// Stores that the session has ended, when, and why. Called at exit and exec, also in a handler that calls
// _exit(), and by the holder of Control. In a handler whose own thread holds file_lock, set_moment() and
// trim_file() are skipped.
//
// Order: (1) the kernel's counters, (2) kernel_end_known, (3) `state`, (4) the file is shortened. So a reader
// that finds `state` also finds kernel_end_known, and then the counters. The file is shortened last, because
// that only frees space.
void end_session(penstock_process_state state) noexcept {
  if (session.state.load(std::memory_order_acquire) != SessionState::running || !is_own_session()) {
    return;
  }
  penstock_session_header& h = *session.header;
  const LockGuard guard(file_lock);
  if (guard.has_lock()) {
    set_moment();
  }
  penstock_kernel_io io{};
  if (read_kernel_io(io)) {
    io.wchar += file.unflushed_bytes;
    h.kernel_end = io;
    const CountedBytes counted = counted_bytes();
    h.counted_end_read = counted.read;
    h.counted_end_written = counted.written;
    h.counted_end_is_known = 1;
    __atomic_store_n(&h.kernel_end_known, 1U, __ATOMIC_RELEASE);
  }
  h.end_monotonic_ns = is_sealed.load(std::memory_order_relaxed) ? 0 : nanoseconds(CLOCK_MONOTONIC);
  __atomic_store_n(&h.state, uint32_t(state), __ATOMIC_RELEASE);
  if (guard.has_lock()) {
    trim_file();
  }
}

// Undoes end_session() after a failed exec. `state` is stored last: until then readers treat the session as
// ended.
void resume_session() noexcept {
  if (session.state.load(std::memory_order_acquire) == SessionState::running) {
    session.header->end_monotonic_ns = 0;
    __atomic_store_n(&session.header->kernel_end_known, 0U, __ATOMIC_RELEASE);
    session.header->counted_end_is_known = 0;
    __atomic_store_n(&session.header->state, uint32_t{PENSTOCK_RUNNING}, __ATOMIC_RELEASE);
  }
}

// Adds an event to the file. Any thread and any handler may call this; the caller holds no lock but Control.
// `text` is the program's memory; at most 4,096 bytes of it are stored. The entry is written first, and then
// `used` is stored with release order. So readers see all of the entry or nothing of it, also after a crash.
void add_event(penstock_event_kind kind, uint32_t pid, const char* text) noexcept {
  if (session.state.load(std::memory_order_acquire) != SessionState::running) {
    return;
  }
  const LockGuard guard(file_lock);
  const size_t length = text == nullptr ? 0 : strnlen(text, 4096);
  const uint64_t bytes = sizeof(penstock_event) + (length + 7) / 8 * 8;
  if (guard.has_lock() &&
      (file.event_block == nullptr ||
       sizeof(penstock_block) + file.event_block->used + bytes > file.event_block->bytes)) {
    if (penstock_block* new_event_block = add_block(PENSTOCK_BLOCK_EVENTS, 0, bytes);
        new_event_block != nullptr) {
      file.event_block = new_event_block;
    }
  }
  penstock_block* block = guard.has_lock() ? file.event_block : nullptr;
  if (block == nullptr || sizeof(penstock_block) + block->used + bytes > block->bytes) {
    count_drop(session.header->dropped_operations);
    return;
  }
  char* entry = reinterpret_cast<char*>(block) + sizeof(penstock_block) + block->used;
  const penstock_event event{
      .ticks = ticks(), .pid = pid, .kind = uint16_t(kind), .length = uint16_t(length)};
  memcpy(entry, &event, sizeof(event));
  if (length != 0) {
    memcpy(entry + sizeof(event), text, length);
  }
  __atomic_store_n(&block->used, block->used + bytes, __ATOMIC_RELEASE);
}

}  // namespace penstock::interpose
