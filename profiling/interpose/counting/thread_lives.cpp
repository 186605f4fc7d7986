// Gives each thread its log: at its first call, at its end, across forks, and from one session to the next.
//
// Threads: three kinds run this code:
// - a thread of the program, in a wrapper (begin_log(), suspend_log()) or at its end (end_thread());
// - the thread that changes the session, with Control held, between session.changes = true and = false
//   (wait_for_updates(), retire_logs(), copy_names_to_session(), is_written_to());
// - in a fork's child its only thread (forget_parents_logs()), or the one that makes the first counted call
//   (copy_names_of_parent()).
// Locks: logs_lock for the lists of logs and the block of threads, begin_lock for the begin of a child's
// session. They are never held together; the session's file_lock may be taken under either.
// wait_for_updates() releases logs_lock between two checks, because updates of other threads may need it.
// Memory: from the kernel; logs are never freed. No malloc and no FILE of stdio: a wrapper may be called by
// malloc itself. All thread-local variables are "initial-exec", because another model may allocate at the
// first access.
// Signals: Control blocks them in the thread that changes the session. In other threads a handler finds no
// log while `is_beginning_log` is set.
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

constinit thread_local ThreadLog* own_log __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

thread_local ThreadLog* suspended_log __attribute__((tls_model("initial-exec"))) = nullptr;
// How many vforks are active in this thread: a vfork's child may call vfork() itself.
thread_local unsigned suspend_depth __attribute__((tls_model("initial-exec"))) = 0;
// While this is set, begin_log() returns null. So a wrapped call that a handler or begin_log() itself makes
// meanwhile is not counted.
thread_local bool is_beginning_log __attribute__((tls_model("initial-exec"))) = false;
// This thread's log of the previous session. No other thread writes to it, so this thread uses it again.
thread_local ThreadLog* former_log __attribute__((tls_model("initial-exec"))) = nullptr;

pthread_key_t ended_key;
bool has_thread_key = false;

constinit OwnedLock logs_lock;
constinit OwnedLock begin_lock;
constinit ThreadLog* free_logs = nullptr;
constinit ThreadLog* all_logs = nullptr;  // all logs that were ever made; no log is freed
constinit penstock_block* threads_block = nullptr;

// Adds an entry for the thread's totals to the session's file, and returns it. Takes logs_lock and, for a new
// block, file_lock. Null if there is no room, and in a handler whose own thread holds logs_lock: then the
// thread tries again at its next call.
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

// Forgets the log's counters, cache and deferred operations. Called by the log's own thread in an update, or
// by a thread that has taken a log without an owner.
void forget_files(ThreadLog& log) noexcept {
  log.files.clear();
  for (ThreadLog::Cached& cached : log.cache) {
    cached = {};
  }
  log.deferred_count = 0;
}

// Removes all pointers into a session from the log. Called within an update, or for a log without an owner.
void clear_log(ThreadLog& log) noexcept {
  forget_files(log);
  log.counters = log.brief_counters = log.names = log.segments = log.spans = nullptr;
  log.totals = nullptr;
  log.base = nullptr;
  log.is_retired = false;
}

// Gives the log to the next thread that needs one, which fills the rest of its blocks. Never called in a
// handler, so the lock is always obtained.
void add_to_free_logs(ThreadLog& log) noexcept {
  const LockGuard guard(logs_lock);
  log.next_free = free_logs;
  free_logs = &log;
}

// Gives the log of an ending thread to the next thread. It is the destructor of ended_key: it runs in the
// ending thread, after the thread's own function has returned, with no lock held. Destructors of other keys
// may do I/O before or after this. If they do it after this, the thread gets another log. Signals are not
// blocked: `is_beginning_log` makes handlers find no log meanwhile. While the state is `forked` this process
// has no file yet, so nothing is written.
void end_thread(void* ended) noexcept {
  auto* log = static_cast<ThreadLog*>(ended);
  is_beginning_log = true;  // set before own_log is cleared, or a handler would begin a log in between
  own_log = nullptr;
  former_log = nullptr;
  if (session.state.load(std::memory_order_acquire) == SessionState::forked) {
    is_beginning_log = false;
    return;
  }
  log->update_mark = nullptr;  // longjmp() may have left a mark
  log->is_ending = true;       // follow_session() must not give it a new session
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

// A log without an owner: a free one, or a new one. Takes logs_lock, but not while it asks the kernel for
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

// Whether the log's thread exists. A thread that ended by a bare exit system call runs no destructor, so its
// log keeps its owner.
bool thread_exists(const ThreadLog& log) noexcept {
  return system_call(SYS_tgkill, system_call(SYS_getpid), long(log.thread), 0) == 0;
}

// Makes the log's thread find no log at its next call. Called by the thread that changes the session, under
// logs_lock, while no thread is inside an update. The other thread may end at any time. Its stack, which has
// own_log, may then be unmapped or belong to another thread. So the kernel reads own_log: process_vm_readv()
// fails instead of crashing. own_log is written only if it still refers to this log.
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

// Copies the names of descriptors from one session to another; `log` writes them.
struct NameCopy {
  const char* from;  // null if the old session cannot be read any more
  ThreadLog* log;
  uint32_t number = ++copies;  // a description of several descriptors is copied only once

  static inline uint32_t copies = 0;
};
void copy_name_of(Description& description, void* with) noexcept {
  const auto& copy = *static_cast<const NameCopy*>(with);
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
// Copies the names of the descriptors of a fork's child. Called in the child's first counted call, before the
// parent's file is unmapped. The child may have other threads by then; they wait for begin_lock.
void copy_names_of_parent(const char* parents_base) noexcept {
  if (own_log != nullptr) {
    own_log->base = session.base;
  }
  NameCopy copy{.from = parents_base, .log = own_log};
  for_each_description_in_child(&copy_name_of, &copy);
}

}  // namespace

// Copies the names of all descriptors to the new session, with a log that no thread owns. Called by the
// thread that changes the session. Other threads may close and duplicate descriptors meanwhile, but wait in
// Update before they use a name. The log is given back afterwards, so that the next thread fills its blocks.
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

// Waits until no thread is inside an update. Meanwhile other threads end their updates, and begin no new ones
// because they see session.changes (Update, counting.hpp). The lock is released between two checks, because
// an update may need it to begin a log. A log whose thread has died inside an update is not waited for.
bool wait_for_updates() noexcept {
  constexpr int64_t kMostWaitNs = 2'000'000'000;
  const int64_t begin_ns = nanoseconds(CLOCK_MONOTONIC);
  for (;;) {
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
    if (nanoseconds(CLOCK_MONOTONIC) - begin_ns > kMostWaitNs) {
      return false;
    }
    system_call(SYS_sched_yield);
  }
}

// `is_retired` is set before own_log is cleared: a thread that still has the pointer to its log finds it
// retired in its next Update, and moves it to the new session itself.
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
  has_thread_key = pthread_key_create(&ended_key, &end_thread) == 0;
}

namespace {

// Whether a session runs. In a fork's child the first counted call of any thread begins a session, while the
// other threads wait for begin_lock. Called within an Update. A handler whose own thread holds the lock
// records nothing.
bool begin_or_find_session(ThreadLog& log) noexcept {
  if (session.state.load(std::memory_order_acquire) == SessionState::forked) {
    const LockGuard guard(begin_lock);
    if (!guard.has_lock()) {
      return false;
    }
    if (session.state.load(std::memory_order_acquire) == SessionState::forked) {
      own_log = &log;  // copy_names_of_parent() writes the names with it
      begin_forked_session(&copy_names_of_parent);
      own_log = nullptr;
    }
  }
  return session.state.load(std::memory_order_acquire) == SessionState::running;
}

}  // namespace

// Makes the log belong to the session that runs now. Called within an Update of the log, in its own thread.
// former_log is set first, so that the log is found again if no session runs now. `owner` is set before
// own_log: retire_logs() finds own_log by it.
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

// Gives the calling thread its log, and returns it. Called in a wrapper, before the program's call, if the
// thread has no log: at its first call, in a new session, or in a fork's child. No lock is held. The call may
// come from malloc, from a handler, or from this function itself through a wrapper. So `is_beginning_log` is
// set first. pthread_setspecific() may call malloc (glibc, for keys from 32 on); it runs while
// `is_beginning_log` is still set, so that the allocator's own calls find no log and do not enter this
// function again.
ThreadLog* begin_log() noexcept {
  if (suspend_depth != 0 || is_beginning_log ||
      session.state.load(std::memory_order_acquire) == SessionState::off) {
    return nullptr;
  }
  if (former_log != nullptr && former_log->update_mark != nullptr) {
    return nullptr;  // this is a handler that interrupts an update of the previous session
  }
  is_beginning_log = true;
  const int saved_errno = errno;
  ThreadLog* log = former_log != nullptr ? former_log : take_unowned_log();
  if (log != nullptr) {
    log->thread = uint32_t(system_call(SYS_gettid));
    const Update update(*log);  // moves it to the session that runs now, if it is retired
    if (own_log == nullptr) {
      begin_in_session(*log);
    }
  }
  log = own_log;
  if (has_thread_key && log != nullptr) {
    pthread_setspecific(ended_key, log);
  }
  errno = saved_errno;
  is_beginning_log = false;
  return log;
}

// Resets the locks, and forgets all logs but that of the forking thread. Called in a fork's child by
// after_fork_in_child(), while it has one thread. The locks are reset first: threads of the parent that held
// them do not exist here, so waiting would last for ever. The logs of the parent's other threads are not
// reachable any more; their memory is shared with the parent until it is written to. The forking thread's own
// log is made again in the same memory, and keeps its table. session.changes is cleared: the parent's thread
// that set it does not exist here.
void forget_parents_logs() noexcept {
  logs_lock.reset();
  begin_lock.reset();
  if (has_thread_key) {
    // Otherwise end_thread() would give this log back, although another thread may have it by then.
    pthread_setspecific(ended_key, nullptr);
  }
  ThreadLog* log = own_log != nullptr ? own_log : former_log;
  own_log = nullptr;
  free_logs = nullptr;
  all_logs = nullptr;
  former_log = nullptr;
  threads_block = nullptr;
  session.changes.store(false, std::memory_order_relaxed);
  if (log != nullptr) {
    const FileTable files = log->files;
    new (log) ThreadLog;
    log->files = files;
    log->files.clear();
    free_logs = log;
    all_logs = log;
  }
}

// Takes the log away from this thread until restore_log(). Called before vfork() and clone() with CLONE_VM
// and CLONE_VFORK, in the thread that makes the call. The child runs on this thread's variables, so it and
// its handlers find no log, while the parent's thread sleeps. `suspend_depth` is a count, because the child
// may itself call vfork().
void suspend_log() noexcept {
  if (suspend_depth++ == 0) {
    suspended_log = own_log;
    own_log = nullptr;
  }
}
// Gives this thread its log again. Called in the parent, when the child has executed another program or
// ended. The session may have changed meanwhile; in that case own_log becomes null, and begin_log() finds the
// log later.
void restore_log() noexcept {
  if (--suspend_depth == 0) {
    own_log = suspended_log != nullptr && suspended_log->is_retired ? nullptr : suspended_log;
  }
}
bool log_suspended() noexcept {
  return suspend_depth != 0;
}

}  // namespace penstock::interpose
