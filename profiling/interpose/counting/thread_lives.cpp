// Which thread has which log: from a thread's first call to its end, over forks, and from one session to the
// next.
#include <errno.h>
#include <pthread.h>
#include <sys/uio.h>

#include <new>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/counting/log_parts.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"
#include "profiling/interpose/writer/private_memory.hpp"
#include "profiling/interpose/writer/ticks.hpp"

namespace penstock::interpose {

constinit thread_local ThreadLog* own_log __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

thread_local ThreadLog* suspended_log __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local unsigned suspended __attribute__((tls_model("initial-exec"))) = 0;  // vforks within vforks
thread_local bool beginning __attribute__((tls_model("initial-exec"))) = false;
// What own_log was in the session before: nobody else writes to it, and it is started anew.
thread_local ThreadLog* kept_log __attribute__((tls_model("initial-exec"))) = nullptr;

pthread_key_t ended_key;
bool watching = false;

constinit OwnedLock logs_lock;
constinit OwnedLock begin_lock;
constinit ThreadLog* free_logs = nullptr;
constinit ThreadLog* all_logs = nullptr;  // that were ever made; none is given back
constinit penstock_block* threads_block = nullptr;

penstock_thread* add_thread(std::uint32_t thread) noexcept {
  const Hold hold(logs_lock);
  if (!hold.held()) {
    return nullptr;
  }
  if (room_left(threads_block) < sizeof(penstock_thread)) {
    penstock_block* fresh = new_block(PENSTOCK_BLOCK_THREADS, sizeof(penstock_thread),
                                      PENSTOCK_BLOCK_GRANULE - sizeof(penstock_block));
    if (fresh == nullptr) {
      return nullptr;
    }
    threads_block = fresh;
  }
  auto* entry = reinterpret_cast<penstock_thread*>(free_part(threads_block));
  entry->thread = thread;
  entry->begin_ticks = ticks();
  use(threads_block, sizeof(penstock_thread));
  return entry;
}

void forget_files(ThreadLog& log) noexcept {
  log.files.clear();
  for (ThreadLog::Cached& cached : log.cache) {
    cached = {};
  }
  log.deferred_count = 0;
}

// Nothing of it points into a session any more.
void begin_anew(ThreadLog& log) noexcept {
  forget_files(log);
  log.counters = log.briefs = log.names = log.segments = log.spans = nullptr;
  log.counters_bytes = log.briefs_bytes = log.names_bytes = log.segments_bytes = log.spans_bytes = 0;
  log.totals = nullptr;
  log.base = nullptr;
  log.retired = false;
}

// For the next thread, which fills its blocks.
void give_back(ThreadLog& log) noexcept {
  const Hold hold(logs_lock);
  log.next_free = free_logs;
  free_logs = &log;
}

void end_thread(void* ended) noexcept {
  auto* log = static_cast<ThreadLog*>(ended);
  beginning = true;   // a handler that comes now finds nothing to write to
  own_log = nullptr;  // what other destructors of this thread do begins another log
  kept_log = nullptr;
  if (session.state.load(std::memory_order_acquire) == SessionState::forked) {
    beginning = false;
    return;
  }
  log->updating = nullptr;
  log->ending = true;
  {
    const Update update(*log);
    log->totals->end_ticks = ticks();
    system_call(SYS_prctl, 16 /* PR_GET_NAME */, word(log->totals->name));
    if (!log->retired) {
      note_moment(log->totals->end_ticks);
    }
    forget_files(*log);
    log->owner = nullptr;
  }
  log->ending = false;
  give_back(*log);
  beginning = false;
}

ThreadLog* take_log() noexcept {
  {
    const Hold hold(logs_lock);
    if (!hold.held()) {
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
  const Hold hold(logs_lock);
  log->next_made = all_logs;
  all_logs = log;
  return log;
}

// Whether its thread is there; one that ended past pthread's own ways says nothing.
bool lives(const ThreadLog& log) noexcept {
  return system_call(SYS_tgkill, system_call(SYS_getpid), static_cast<long>(log.thread), 0) == 0;
}

// The thread finds no log of its own at its next call. Its memory may be gone with it, and be another's.
void disown(const ThreadLog& log) noexcept {
  ThreadLog* own = nullptr;
  ThreadLog* const none = nullptr;
  const long self = system_call(SYS_getpid);
  iovec here{.iov_base = &own, .iov_len = sizeof(own)};
  iovec there{.iov_base = log.owner, .iov_len = sizeof(own)};
  if (!lives(log) ||
      system_call(SYS_process_vm_readv, self, word(&here), 1, word(&there), 1, 0) != sizeof(own) ||
      own != &log) {
    return;
  }
  __atomic_store_n(log.owner, none, __ATOMIC_RELEASE);
}

// Names that descriptors have are copied from one session to another, by `log`.
struct NamesAlong {
  const char* from;  // null: they cannot be read any more
  ThreadLog* log;
  std::uint32_t time = ++times;  // a description that has several descriptors is come upon several times

  static inline std::uint32_t times = 0;
};
void take_name_along(Description& description, void* with) noexcept {
  const auto& along = *static_cast<const NamesAlong*>(with);
  if (description.name == 0 || description.taken_along == along.time) {
    return;
  }
  description.taken_along = along.time;
  if (along.from == nullptr || along.log == nullptr || along.log->base == nullptr) {
    description.name = 0;
    return;
  }
  const auto* name = reinterpret_cast<const penstock_name*>(along.from + description.name);
  description.name = add_name(*along.log, name->file, reinterpret_cast<const char*>(name + 1), name->length,
                              static_cast<penstock_file_kind>(name->kind));
}
// Of the descriptors of a fork's child.
void take_parents_names_along(const char* parents_base) noexcept {
  if (own_log != nullptr) {
    own_log->base = session.base;
  }
  NamesAlong along{.from = parents_base, .log = own_log};
  for_each_description(&take_name_along, &along);
}

}  // namespace

void take_names_along(const char* old_base) noexcept {
  ThreadLog* log = take_log();
  if (log != nullptr) {
    begin_anew(*log);
    log->base = session.base;
  }
  NamesAlong along{.from = old_base, .log = log};
  for_each_living_description(&take_name_along, &along);
  if (log != nullptr) {
    give_back(*log);
  }
}

bool wait_for_updates() noexcept {
  constexpr std::int64_t kPatienceNs = 2'000'000'000;
  const std::int64_t begin_ns = nanoseconds(CLOCK_MONOTONIC);
  for (;;) {
    bool busy = false;
    {
      const Hold hold(logs_lock);
      for (const ThreadLog* log = all_logs; log != nullptr; log = log->next_made) {
        busy = busy || (log->updating != nullptr && lives(*log));
      }
    }
    if (!busy) {
      return true;
    }
    if (nanoseconds(CLOCK_MONOTONIC) - begin_ns > kPatienceNs) {
      return false;
    }
    system_call(SYS_sched_yield);
  }
}

void retire_logs() noexcept {
  const Hold hold(logs_lock);
  for (ThreadLog* log = all_logs; log != nullptr; log = log->next_made) {
    log->retired = true;
    if (log->owner != nullptr) {
      disown(*log);
    }
  }
  threads_block = nullptr;
}

bool is_written_to(const char* base) noexcept {
  const Hold hold(logs_lock);
  for (const ThreadLog* log = all_logs; log != nullptr; log = log->next_made) {
    if (log->base == base && log->owner != nullptr && lives(*log)) {
      return true;
    }
  }
  return false;
}

void watch_threads() noexcept {
  watching = pthread_key_create(&ended_key, &end_thread) == 0;
}

namespace {

// The first to do something in a fork's child begins its session; the others wait for that.
bool session_runs(ThreadLog& log) noexcept {
  if (session.state.load(std::memory_order_acquire) == SessionState::forked) {
    const Hold hold(begin_lock);
    if (!hold.held()) {
      return false;
    }
    if (session.state.load(std::memory_order_acquire) == SessionState::forked) {
      own_log = &log;  // takes the names along
      begin_forked(&take_parents_names_along);
      own_log = nullptr;
    }
  }
  return session.state.load(std::memory_order_acquire) == SessionState::running;
}

}  // namespace

void begin_in_session(ThreadLog& log) noexcept {
  kept_log = &log;
  if (!session_runs(log)) {
    return;
  }
  if (log.retired || log.base != session.base) {
    count_drop(session.header->dropped_operations, log.deferred_count);
    begin_anew(log);
  }
  log.base = session.base;
  log.totals = add_thread(log.thread);
  if (log.totals != nullptr) {
    log.owner = &own_log;
    own_log = &log;
  }
}

ThreadLog* begin_log() noexcept {
  if (suspended != 0 || beginning || session.state.load(std::memory_order_acquire) == SessionState::off) {
    return nullptr;
  }
  if (kept_log != nullptr && kept_log->updating != nullptr) {
    return nullptr;  // a handler that came upon the end of a call which began in the session before
  }
  beginning = true;
  const int saved = errno;
  ThreadLog* log = kept_log != nullptr ? kept_log : take_log();
  if (log != nullptr) {
    log->thread = static_cast<std::uint32_t>(system_call(SYS_gettid));
    const Update update(*log);  // takes it to the session that runs now, if it was of one before
    if (own_log == nullptr) {
      begin_in_session(*log);
    }
  }
  log = own_log;
  if (watching && log != nullptr) {
    pthread_setspecific(ended_key, log);
  }
  errno = saved;
  beginning = false;
  return log;
}

void forget_parents_logs() noexcept {
  logs_lock.reset();
  begin_lock.reset();
  if (watching) {
    pthread_setspecific(ended_key, nullptr);  // another thread may have that log by the time this one ends
  }
  ThreadLog* log = own_log != nullptr ? own_log : kept_log;
  own_log = nullptr;
  free_logs = nullptr;  // those of the parent's other threads are not reachable, theirs is memory that nobody
                        // wrote to
  all_logs = nullptr;
  kept_log = nullptr;
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

void suspend_log() noexcept {
  if (suspended++ == 0) {
    suspended_log = own_log;
    own_log = nullptr;
  }
}
void restore_log() noexcept {
  if (--suspended == 0) {
    own_log = suspended_log != nullptr && suspended_log->retired ? nullptr : suspended_log;
  }
}
bool log_suspended() noexcept {
  return suspended != 0;
}

}  // namespace penstock::interpose
