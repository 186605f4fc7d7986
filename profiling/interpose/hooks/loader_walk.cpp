// Prevents a walk over the loaded objects and a fork from happening at the same time. Two counters are used
// instead of a lock: the number of running walks, and the number of running forks.
//
// Threads: any thread, in a wrapped call or around its fork.
// Locks: none of this library. A mutex cannot be used: a walk may be interrupted by a handler that forks, and
// a fork's handlers may walk, both in one thread. dl_iterate_phdr() holds the loader's lock while it visits.
// Waiting is by polling with a limit of 5 s, so this waiting cannot become a deadlock. The counters are
// sequentially consistent, which the order in the next comment needs.
// Memory: nothing is allocated, except by find_loader_lock() at the first walk of a process.
// Signals: not blocked. A handler may walk or fork inside a walk of its own thread; the counters nest.
// Forks: a child resets the counters and inspects the loader's lock (forget_parents_walks()).
#include "profiling/interpose/hooks/loader_walk.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "profiling/interpose/writer/session.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

namespace {

constexpr int64_t kMostWaitNs = 5'000'000'000;

// A walk or a fork first increases its own counter and then reads the other one. So if a walk and a fork
// begin at the same time, at least one of them sees the other and waits. If they read first, both could
// enter.
constinit std::atomic<unsigned> walks{0};
constinit std::atomic<unsigned> forks{0};
// This thread's own share of the counters. The thread must not wait for its own share: a handler may fork
// during a walk of its thread, and a handler of fork() may walk.
constinit thread_local unsigned walks_here __attribute__((tls_model("initial-exec"))) = 0;
constinit thread_local unsigned forks_here __attribute__((tls_model("initial-exec"))) = 0;

// The loader's lock, once it is known, and the pid of the process that found or inspected it. A child that
// was forked by a call without a wrapper has another pid, and must inspect the lock itself.
constinit std::atomic<const pthread_mutex_t*> loader_lock{nullptr};
constinit std::atomic<long> noted_pid{0};
enum class LoaderState { usable, unknown, stuck };
constinit std::atomic<LoaderState> loader{LoaderState::usable};
constinit std::atomic<bool> raw_child{false};

// Subtracts one, but not below 0: a child that was forked by a handler returns into a walk that began in its
// parent, and whose count was reset.
void subtract_one(std::atomic<unsigned>& counter) noexcept {
  unsigned value = counter.load();
  while (value != 0 && !counter.compare_exchange_weak(value, value - 1)) {
  }
}

// Waits until the counter is 0. False if it is still not 0 after 5 s. Runs in any thread, in the program's
// call, perhaps in a handler. Makes direct system calls only.
bool wait_until_zero(const std::atomic<unsigned>& counter) noexcept {
  const int64_t until = nanoseconds(CLOCK_MONOTONIC) + kMostWaitNs;
  for (unsigned tries = 0; counter.load() != 0; ++tries) {
    if (nanoseconds(CLOCK_MONOTONIC) > until) {
      return false;
    }
    const timespec pause_time{.tv_sec = 0, .tv_nsec = 50'000};
    tries < 50 ? system_call(SYS_sched_yield) : system_call(SYS_nanosleep, as_argument(&pause_time), 0);
  }
  return true;
}

// --- Finding the loader's lock. It is a recursive mutex inside the loader's _rtld_global, at an offset that
// depends on glibc's version. The mutex that this thread owns during a walk, and does not own after it, is
// the lock.

struct MutexSearch {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  const pthread_mutex_t* mutexes[8] = {};
  unsigned mutex_count = 0;
};

// Whether this thread owns the mutex. Reads glibc's private fields, atomically, because other threads change
// them. Takes no lock.
bool is_held_by_thread(const pthread_mutex_t& mutex) noexcept {
#ifdef __GLIBC__
  const auto& data = mutex.__data;
  const int owner = __atomic_load_n(&data.__owner, __ATOMIC_RELAXED);
  return owner == int(system_call(SYS_gettid)) && __atomic_load_n(&data.__lock, __ATOMIC_RELAXED) != 0 &&
         __atomic_load_n(&data.__count, __ATOMIC_RELAXED) != 0 &&
         (data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP;
#else
  return false;
#endif
}

// Called inside the walk, while this thread holds the loader's lock. It only reads memory.
int find_own_mutex(dl_phdr_info*, size_t, void* with) noexcept {
  auto& search = *static_cast<MutexSearch*>(with);
  const int self = int(system_call(SYS_gettid));
  for (uintptr_t at = search.begin; at + sizeof(pthread_mutex_t) <= search.end;
       at += alignof(pthread_mutex_t)) {
    const auto* mutex = reinterpret_cast<const pthread_mutex_t*>(at);
#ifdef __GLIBC__
    const bool is_owned_here = __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) == self;
#else
    const bool is_owned_here = false;
#endif
    if (is_owned_here && is_held_by_thread(*mutex) && search.mutex_count < 8) {
      search.mutexes[search.mutex_count++] = mutex;
    }
  }
  return 1;
}

// Called once in a process, by check_process(), and counted as a walk. Only here dlsym() and dladdr1() are
// called, which take locks of the loader and may allocate. That is usually in the library's constructor. If
// several mutexes fit, the lock stays unknown.
void find_loader_lock() noexcept {
  MutexSearch search;
  void* const global = dlsym(RTLD_DEFAULT, "_rtld_global");
  Dl_info info{};
  void* symbol = nullptr;
  if (global == nullptr || dladdr1(global, &info, &symbol, RTLD_DL_SYMENT) == 0 || symbol == nullptr) {
    return;
  }
  search.begin = reinterpret_cast<uintptr_t>(global);
  search.end = search.begin + static_cast<const ElfW(Sym)*>(symbol)->st_size;
  dl_iterate_phdr(&find_own_mutex, &search);
  const pthread_mutex_t* found_mutex = nullptr;
  unsigned matches = 0;
  for (unsigned i = 0; i < search.mutex_count; ++i) {
    if (!is_held_by_thread(*search.mutexes[i])) {
      found_mutex = search.mutexes[i];
      ++matches;
    }
  }
  if (matches == 1) {
    loader_lock.store(found_mutex);
  }
}

// Called in a fork's child before its first walk. No thread of the child has taken the lock yet. So if it is
// held, its owner is a thread that does not exist here. Or the owner is this thread, which forked inside a
// walk of its own.
void inspect_loader_lock() noexcept {
  const pthread_mutex_t* const lock = loader_lock.load();
#ifdef __GLIBC__
  const bool is_held = lock != nullptr && __atomic_load_n(&lock->__data.__lock, __ATOMIC_RELAXED) != 0;
#else
  const bool is_held = false;
#endif
  loader.store(lock == nullptr ? LoaderState::unknown : is_held ? LoaderState::stuck : LoaderState::usable);
  noted_pid.store(system_call(SYS_getpid));
}

// Called before each walk and before the state of the loader's lock is read. The first call finds the lock.
// If the pid has changed since then, this process is a child that was forked by a call without a wrapper. In
// that case this does what after_raw_fork_in_child() would have done for the loader.
void check_process() noexcept {
  const long known_pid = noted_pid.load();
  if (known_pid == 0) {
    noted_pid.store(system_call(SYS_getpid));
    walks_here += 1;
    walks.fetch_add(1);
    find_loader_lock();
    subtract_one(walks);
    walks_here -= 1;
  } else if (known_pid != system_call(SYS_getpid)) {
    forget_parents_walks();
    note_raw_fork();
  }
}

}  // namespace

// No lock is held on entry. The loader's lock is held while `visit` runs. A handler may interrupt this and
// walk itself, because the lock is recursive and the counters can be increased several times. If a handler
// forks here, the parent continues, and the child finds the counters reset (hence the checks for 0).
//
// While a fork is running, this thread takes its own count back; otherwise the two would wait for each other.
// After 5 s this thread walks although the fork is still running. The child may then find the lock held,
// which inspect_loader_lock() detects.
int walk_objects(Visit visit, void* with) noexcept {
  check_process();
  if (loader.load() == LoaderState::stuck) {
    return 0;
  }
  walks_here += 1;
  walks.fetch_add(1);
  while (forks_here == 0 && forks.load() != 0) {
    subtract_one(walks);
    const bool no_forks = wait_until_zero(forks);
    walks.fetch_add(1);
    if (!no_forks) {
      break;
    }
  }
  const int result = dl_iterate_phdr(visit, with);
  subtract_one(walks);
  walks_here -= walks_here == 0 ? 0 : 1;
  return result;
}

// Takes no lock. A fork may begin right after this check; then walk_objects() waits for it.
bool may_walk_objects() noexcept {
  check_process();
  return loader.load() == LoaderState::usable && forks_here == 0 && forks.load() == 0;
}

// Takes no lock. True also if the loader's lock could not be found, because then its state is not known.
bool loader_is_stuck() noexcept {
  check_process();
  return loader.load() != LoaderState::usable;
}

// Called in the thread that forks: as a handler of pthread_atfork(), or directly around _Fork(), clone() and
// syscall(). Does not wait in a handler that interrupted a walk of its own thread.
void before_fork() noexcept {
  forks_here += 1;
  forks.fetch_add(1);
  if (walks_here == 0) {
    // After 5 s the program forks although a walk is still running. If the child then finds the loader's lock
    // held, the child never walks.
    wait_until_zero(walks);
  }
}

void after_fork_in_parent() noexcept {
  subtract_one(forks);
  forks_here -= forks_here == 0 ? 0 : 1;
}

// Called in the child, before any other code there that may walk. Only this thread exists. The counters of
// threads that do not exist are reset, and the lock is inspected before any thread of the child can take it.
void forget_parents_walks() noexcept {
  walks.store(0);
  forks.store(0);
  walks_here = 0;
  forks_here = 0;
  raw_child.store(false);
  inspect_loader_lock();
}

void note_raw_fork() noexcept {
  raw_child.store(true);
}

bool is_raw_child() noexcept {
  return raw_child.load(std::memory_order_relaxed);
}

}  // namespace penstock::interpose
