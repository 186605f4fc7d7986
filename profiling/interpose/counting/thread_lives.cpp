// Gives each thread its log: at its first call, at its end, across forks, and from one session to the next.
//
// Threads: three kinds of threads run this code:
// - a thread of the program, in a wrapper (begin_log(), suspend_log()) or at its end (end_thread());
// - the thread that changes the session, which holds Control, while session.is_changing is set
//   (wait_for_updates(), retire_logs(), copy_names_to_session(), is_written_to());
// - in a fork's child its only thread (forget_parents_logs()), or the one that makes the first counted call
//   (copy_names_of_parent()).
// Locks: logs_lock is for the lists of logs and for threads_block. begin_lock is for the start of a fork
// child's session. No thread holds both locks at once. The session's file_lock may be taken under either of
// them. wait_for_updates() releases logs_lock between two checks, because updates (Update, counting.hpp) of
// other threads may need it.
// Memory: from the kernel; logs are never freed. malloc and stdio are not used, because malloc itself may
// call a wrapper. All thread-local variables are "initial-exec", because other models may allocate memory at
// the first access.
// Signals: the thread that changes the session has all of them blocked, because it holds Control. In other
// threads, while `is_beginning_log` is set, a handler finds no log unless own_log is set already.
// Forks: a child resets both locks without taking them (forget_parents_logs()).
#include <errno.h>
#include <pthread.h>
#include <sys/uio.h>

#include <new>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/counting/thread_log.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"
#include "profiling/interpose/writer/private_memory.hpp"
#include "profiling/interpose/writer/session_lifetime.hpp"

namespace penstock::interpose {

constinit thread_local const char* volatile InOtherLibrary::begin_
    __attribute__((tls_model("initial-exec"))) = nullptr;
constinit thread_local ThreadLog* own_log __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

thread_local ThreadLog* suspended_log __attribute__((tls_model("initial-exec"))) = nullptr;
// The number of vforks that this thread has called and whose child still runs. It may exceed 1, because the
// child may call vfork() itself.
thread_local unsigned suspend_depth __attribute__((tls_model("initial-exec"))) = 0;
// While this is set, begin_log() returns null. So wrapped calls that a handler or begin_log() itself makes
// before own_log is set are not counted.
thread_local bool is_beginning_log __attribute__((tls_model("initial-exec"))) = false;
// This thread's log of the previous session. No other thread writes to it, so this thread uses it again.
thread_local ThreadLog* former_log __attribute__((tls_model("initial-exec"))) = nullptr;

pthread_key_t thread_end_key;
bool has_thread_end_key = false;

constinit OwnedLock logs_lock;
constinit OwnedLock begin_lock;
constinit ThreadLog* free_logs = nullptr;
constinit ThreadLog* all_logs = nullptr;  // all logs that were ever made; no log is freed
constinit penstock_block* threads_block = nullptr;

// Adds an entry for the thread's totals to the session's file, and returns it. Takes logs_lock and, for a new
// block, file_lock. Null if there is no room, and in a handler whose own thread holds logs_lock. If the
// result is null, the thread tries again at its next call.
penstock_thread* add_thread(uint32_t thread) noexcept {
  const LockGuard guard(logs_lock);
  if (!guard.has_lock()) {
    return nullptr;
  }
  if (free_bytes(threads_block) < sizeof(penstock_thread)) {
    penstock_block* new_threads = new_block(PENSTOCK_BLOCK_THREADS, sizeof(penstock_thread),
                                            PENSTOCK_BLOCK_GRANULE - sizeof(penstock_block));
    if (new_threads == nullptr) {
      return nullptr;
    }
    threads_block = new_threads;
  }
  auto* entry = reinterpret_cast<penstock_thread*>(first_free_byte(threads_block));
  entry->thread = thread;
  entry->begin_ticks = ticks();
  publish_entries(threads_block, sizeof(penstock_thread));
  return entry;
}

// Forgets the log's counters, cache and deferred operations. Called by the log's own thread within an update,
// or for a log without an owner.
void forget_files(ThreadLog& log) noexcept {
  log.files.clear();
  for (ThreadLog::Cached& cached : log.cache) {
    cached = {};
  }
  log.deferred_count = 0;
}

// Clears the log's pointers into the session's file. The caller holds an Update of the log, unless the log
// has no owner.
void clear_log(ThreadLog& log) noexcept {
  forget_files(log);
  log.counters = log.brief_counters = log.names = log.segments = log.spans = nullptr;
  log.totals = nullptr;
  log.base = nullptr;
  log.is_retired = false;
}

// Adds the log to free_logs. The next thread that needs a log takes it, and fills the rest of its blocks.
// Never called in a handler, so logs_lock is always obtained.
void add_to_free_logs(ThreadLog& log) noexcept {
  const LockGuard guard(logs_lock);
  log.next_free = free_logs;
  free_logs = &log;
}

// Gives back the log of an ending thread, for the next thread. This is the destructor of thread_end_key, so
// it runs in the ending thread, after the thread's own function has returned, with no lock held. Destructors
// of other keys may run later and do I/O; in that case the thread gets another log.
// Signals: they are not blocked, but handlers find no log while `is_beginning_log` is set.
// Forks: while the state is `forked`, this process has no session file yet, so nothing is written.
void end_thread(void* key_value) noexcept {
  auto* log = static_cast<ThreadLog*>(key_value);
  is_beginning_log = true;  // set first: otherwise a handler would begin a log after the next line
  own_log = nullptr;
  former_log = nullptr;
  if (session.state.load(std::memory_order_acquire) == SessionState::forked) {
    is_beginning_log = false;
    return;
  }
  log->update_mark = nullptr;  // longjmp() may have left a mark
  log->is_ending = true;       // keeps follow_session() from moving the log to a new session
  {
    const Update update(*log);
    log->totals->end_ticks = ticks();
    system_call(SYS_prctl, 16 /* PR_GET_NAME */, as_argument(log->totals->name));
    if (!log->is_retired) {
      note_moment(log->totals->end_ticks);
    }
    forget_files(*log);
    log->owner = nullptr;
  }
  log->is_ending = false;
  add_to_free_logs(*log);
  is_beginning_log = false;
}

// Returns a log without an owner: a free one, or a new one. Null if there is no memory, and in a handler
// whose own thread holds logs_lock. Takes logs_lock, but does not hold it while it asks the kernel for
// memory.
ThreadLog* take_unowned_log() noexcept {
  {
    const LockGuard guard(logs_lock);
    if (!guard.has_lock()) {
      return nullptr;
    }
    if (free_logs != nullptr) {
      ThreadLog* log = free_logs;
      free_logs = log->next_free;
      return log;
    }
  }
  void* memory = private_memory(sizeof(ThreadLog));
  if (memory == nullptr) {
    return nullptr;
  }
  auto* log = new (memory) ThreadLog;
  if (!log->files.grow()) {
    return nullptr;
  }
  const LockGuard guard(logs_lock);
  log->next_log = all_logs;
  all_logs = log;
  return log;
}

// Whether the log's thread exists. `owner` does not show this: if a thread ends by a direct exit system call,
// end_thread() does not run, and `owner` stays set.
bool thread_exists(const ThreadLog& log) noexcept {
  return system_call(SYS_tgkill, system_call(SYS_getpid), long(log.thread), 0) == 0;
}

// Clears own_log of the log's thread, so that this thread finds no log at its next call. Called by the thread
// that changes the session, under logs_lock, while no thread is inside an update.
// The log's thread may end at any time. Then the memory of its own_log may be unmapped or belong to another
// thread. So own_log is read by process_vm_readv(), which fails instead of crashing. It is written only if it
// still refers to this log.
void clear_own_log(const ThreadLog& log) noexcept {
  ThreadLog* read_log = nullptr;
  ThreadLog* const no_log = nullptr;
  const long pid = system_call(SYS_getpid);
  iovec local{.iov_base = &read_log, .iov_len = sizeof(read_log)};
  iovec remote{.iov_base = log.owner, .iov_len = sizeof(read_log)};
  if (!thread_exists(log) ||
      system_call(SYS_process_vm_readv, pid, as_argument(&local), 1, as_argument(&remote), 1, 0) !=
          sizeof(read_log) ||
      read_log != &log) {
    return;
  }
  __atomic_store_n(log.owner, no_log, __ATOMIC_RELEASE);
}

// What copy_name_of() needs to copy the names of descriptors from one session to another.
struct NameCopy {
  const char* from;  // the old session's mapping; null if it cannot be read any more
  ThreadLog* log;
  uint32_t number = ++copy_count;  // marks handled descriptions, which several descriptors may share

  static inline uint32_t copy_count = 0;
};
void copy_name_of(Description& description, void* context) noexcept {
  const auto& copy = *static_cast<const NameCopy*>(context);
  if (description.name == 0 || description.last_copy_number == copy.number) {
    return;
  }
  description.last_copy_number = copy.number;
  if (copy.from == nullptr || copy.log == nullptr || copy.log->base == nullptr) {
    description.name = 0;
    return;
  }
  const auto* name = reinterpret_cast<const penstock_name*>(copy.from + description.name);
  description.name = add_name(*copy.log, name->file, reinterpret_cast<const char*>(name + 1), name->length,
                              static_cast<penstock_file_kind>(name->kind));
}
// Copies the names of all descriptors from the parent's file to the child's file. Called in a fork's child,
// in its first counted call, before the parent's file is unmapped. If the child has other threads by then,
// they wait for begin_lock.
void copy_names_of_parent(const char* parents_base) noexcept {
  if (own_log != nullptr) {
    own_log->base = session.base;
  }
  NameCopy copy{.from = parents_base, .log = own_log};
  for_each_description_in_child(&copy_name_of, &copy);
}

}  // namespace

// Copies the names of all descriptors to the new session. Called by the thread that changes the session. It
// writes the names with a log that no thread owns, and gives that log back afterwards, so that the next
// thread fills its blocks. Meanwhile other threads may close and duplicate descriptors. They use no name
// during the copy, because they would first wait in Update.
void copy_names_to_session(const char* old_base) noexcept {
  ThreadLog* log = take_unowned_log();
  if (log != nullptr) {
    clear_log(*log);
    log->base = session.base;
  }
  NameCopy copy{.from = old_base, .log = log};
  for_each_description_concurrently(&copy_name_of, &copy);
  if (log != nullptr) {
    add_to_free_logs(*log);
  }
}

// Waits until no log has an update mark, for at most 2 s; false if a log still has one then.
// session.is_changing is set, so no new Update begins. An OuterUpdate may still begin (counting.hpp), but it
// writes only to memory that is mapped already. logs_lock is released between two checks, because a thread
// inside an Update may need it to begin a log. The log of a thread that has died is ignored.
bool wait_for_updates() noexcept {
  constexpr int64_t kMostWaitNs = 2'000'000'000;
  constexpr unsigned kMostTries = 20'000'000;  // a bound also if the clock stands still
  const int64_t begin_ns = nanoseconds(CLOCK_MONOTONIC);
  for (unsigned tries = 0;; ++tries) {
    bool is_busy = false;
    {
      const LockGuard guard(logs_lock);
      for (const ThreadLog* log = all_logs; log != nullptr; log = log->next_log) {
        is_busy = is_busy || (log->update_mark != nullptr && thread_exists(*log));
      }
    }
    if (!is_busy) {
      return true;
    }
    if (nanoseconds(CLOCK_MONOTONIC) - begin_ns > kMostWaitNs || tries == kMostTries) {
      return false;
    }
    system_call(SYS_sched_yield);
  }
}

// Marks all logs as retired, and clears own_log of their threads. A thread may have loaded own_log just
// before that. So `is_retired` is set first: the thread's next Update sees it, and moves the log to the new
// session.
void retire_logs() noexcept {
  const LockGuard guard(logs_lock);
  for (ThreadLog* log = all_logs; log != nullptr; log = log->next_log) {
    log->is_retired = true;
    if (log->owner != nullptr) {
      clear_own_log(*log);
    }
  }
  threads_block = nullptr;
}

bool is_written_to(const char* base) noexcept {
  const LockGuard guard(logs_lock);
  for (const ThreadLog* log = all_logs; log != nullptr; log = log->next_log) {
    if (log->base == base && log->owner != nullptr && thread_exists(*log)) {
      return true;
    }
  }
  return false;
}

void watch_threads() noexcept {
  has_thread_end_key = pthread_key_create(&thread_end_key, &end_thread) == 0;
}

namespace {

// Returns whether a session runs. In a fork's child without a session it begins one first, under begin_lock;
// the child's other threads wait for that lock. The caller holds an Update. In a handler whose own thread
// holds begin_lock the result is false, so the handler records nothing.
bool begin_or_find_session(ThreadLog& log) noexcept {
  if (session.state.load(std::memory_order_acquire) == SessionState::forked) {
    const LockGuard guard(begin_lock);
    if (!guard.has_lock()) {
      return false;
    }
    if (session.state.load(std::memory_order_acquire) == SessionState::forked) {
      own_log = &log;  // copy_names_of_parent() writes the names with this log
      begin_forked_session(&copy_names_of_parent);
      own_log = nullptr;
    }
  }
  return session.state.load(std::memory_order_acquire) == SessionState::running;
}

}  // namespace

// Makes the log belong to the session that runs now. Called in the log's own thread, within an Update of the
// log.
// Order: former_log is set first, so that begin_log() finds the log again if no session runs now. `owner` is
// set before own_log, because retire_logs() uses `owner` to clear own_log.
void begin_in_session(ThreadLog& log) noexcept {
  former_log = &log;
  if (!begin_or_find_session(log)) {
    return;
  }
  if (log.is_retired || log.base != session.base) {
    count_drop(session.header->dropped_operations, log.deferred_count);
    clear_log(log);
  }
  log.base = session.base;
  log.totals = add_thread(log.thread);
  if (log.totals != nullptr) {
    log.owner = &own_log;
    own_log = &log;
  }
}

// Gives the calling thread its log, and returns it. Called when a thread has an operation to count and has no
// log: at its first call, in a new session, or in a fork's child. The caller holds no lock.
// Recursion: what this function does may call a wrapper, through malloc or in a signal handler, and the
// wrapper may call this function again. While `is_beginning_log` is set, such an inner call returns null at
// once. It is still set during pthread_setspecific(), which may call malloc (glibc, for keys from 32 on). An
// inner call is possible even there: another thread may have cleared own_log again (retire_logs()).
ThreadLog* begin_log() noexcept {
  if (InOtherLibrary::is_active()) {
    return nullptr;
  }
  if (own_log != nullptr) {
    return own_log;  // a handler has left a call of another library by longjmp()
  }
  if (suspend_depth != 0 || is_beginning_log ||
      session.state.load(std::memory_order_acquire) == SessionState::off) {
    return nullptr;
  }
  if (is_sealed.load(std::memory_order_relaxed) &&
      session.state.load(std::memory_order_relaxed) == SessionState::running) {
    count_drop(session.header->dropped_operations);  // a log needs system calls
    return nullptr;
  }
  if (former_log != nullptr && former_log->update_mark != nullptr) {
    return nullptr;  // called in a handler that interrupted an Update of this log, for the previous session
  }
  is_beginning_log = true;
  const int saved_errno = errno;
  ThreadLog* log = former_log != nullptr ? former_log : take_unowned_log();
  if (log != nullptr) {
    log->thread = uint32_t(system_call(SYS_gettid));
    const Update update(*log);  // if the log is retired, this moves it to the present session
    if (own_log == nullptr) {
      begin_in_session(*log);
    }
  } else {
    give_up_forked_session();
  }
  log = own_log;
  if (has_thread_end_key && log != nullptr) {
    pthread_setspecific(thread_end_key, log);
  }
  errno = saved_errno;
  is_beginning_log = false;
  return log;
}

// Resets the locks, and forgets all logs but that of the thread that forked. Called in a fork's child by
// after_fork_in_child(), while the child has one thread.
// Locks: they are reset without being taken, because their owners may not exist in the child.
// session.is_changing is cleared for the same reason: the thread that set it does not exist in the child.
// Memory: the log of the thread that forked is made again in the same memory, and keeps the memory of its
// table. The logs of the parent's other threads are not freed. They take no memory of their own, because the
// child shares their pages with the parent.
void forget_parents_logs() noexcept {
  logs_lock.reset();
  begin_lock.reset();
  if (has_thread_end_key) {
    // The key's value is cleared. Otherwise end_thread() would give this log back at the thread's end,
    // although another thread may have taken it from free_logs by then.
    pthread_setspecific(thread_end_key, nullptr);
  }
  ThreadLog* log = own_log != nullptr ? own_log : former_log;
  own_log = nullptr;
  free_logs = nullptr;
  all_logs = nullptr;
  former_log = nullptr;
  threads_block = nullptr;
  session.is_changing.store(false, std::memory_order_relaxed);
  if (log != nullptr) {
    const FileTable files = log->files;
    new (log) ThreadLog;
    log->files = files;
    log->files.clear();
    free_logs = log;
    all_logs = log;
  }
}

// Takes the log away from this thread until restore_log(). Called in the thread that calls vfork(), or
// clone() with CLONE_VM and CLONE_VFORK, before that call. The child uses this thread's variables while the
// thread sleeps. So the child and its handlers find no log. `suspend_depth` is a count, because the child may
// itself call vfork().
void suspend_log() noexcept {
  if (suspend_depth++ == 0) {
    suspended_log = own_log;
    own_log = nullptr;
  }
}
// Gives this thread its log again. Called in the parent, after the child has executed another program or
// ended. If the session has changed meanwhile, own_log stays null, and begin_log() finds the log later.
void restore_log() noexcept {
  if (--suspend_depth == 0) {
    own_log = suspended_log != nullptr && suspended_log->is_retired ? nullptr : suspended_log;
  }
}
bool log_suspended() noexcept {
  return suspend_depth != 0;
}

}  // namespace penstock::interpose
