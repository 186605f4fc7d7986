// Keeps walks over the loaded objects and forks from happening at the same time (loader_walk.hpp). Two
// counters are used instead of a lock: the number of running walks, and the number of running forks.
//
// Threads: any thread, in a wrapped call or around its fork.
// Locks: none of this library. A mutex cannot be used, because one thread may walk and fork at once: a signal
// handler may fork during a walk, and a handler of pthread_atfork() may walk during a fork. dl_iterate_phdr()
// holds the loader's lock while it visits. Waiting is by polling with a limit of 5 s, so this waiting cannot
// become a deadlock. The counters are sequentially consistent, because the comment at `walks` relies on their
// order.
// Memory: nothing is allocated, except by find_loader_lock() at the first walk of a process.
// Signals: not blocked. A handler may walk or fork during a walk of its own thread; the counters are then
// increased once more.
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

// A walk or a fork first increases its own counter, and then reads the counter of the other kind. So if a
// walk and a fork begin at the same time, at least one of them sees the other and waits. If each read first
// and increased later, neither might see the other, and both would run.
constinit std::atomic<unsigned> walks{0};
constinit std::atomic<unsigned> forks{0};
// How many of these walks and forks are made by this thread. A thread must not wait for itself: a signal
// handler may fork during a walk of its own thread, and a handler of pthread_atfork() may walk during its
// fork.
constinit thread_local unsigned walks_here __attribute__((tls_model("initial-exec"))) = 0;
constinit thread_local unsigned forks_here __attribute__((tls_model("initial-exec"))) = 0;

// loader_lock is the loader's lock, once it is known. noted_pid is the process that found or inspected it. A
// child of a fork that no wrapper saw has another pid, and must inspect the lock itself.
constinit std::atomic<const pthread_mutex_t*> loader_lock{nullptr};
constinit std::atomic<long> noted_pid{0};
enum class LoaderState { usable, unknown, stuck };
constinit std::atomic<LoaderState> loader{LoaderState::usable};
constinit std::atomic<bool> raw_child{false};

// Subtracts one, but not below 0. The counter may be 0 already: if a handler forks during a walk, its child
// returns into that walk, after the child's counters were reset.
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

// Collects the mutexes of _rtld_global that this thread owns. Called once inside a walk, while this thread
// holds the loader's lock. It only reads memory, and returns 1 to end the walk.
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

// Finds the loader's lock and stores its address. If several mutexes fit, the lock stays unknown. Called once
// in a process, by check_process(), usually in the library's constructor; it counts as a walk. It calls
// dlsym() and dladdr1(), which take locks of the loader and may allocate; nothing else in this file does.
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

// Finds out whether the loader's lock is held in a fork's child. Called before the child's first walk. After
// a wrapped fork no thread of the child has taken the lock then. So if it is held, its owner is a thread that
// does not exist here, or this thread, which forked inside a walk of its own.
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

// Makes sure that this process has found or inspected the loader's lock. Called before each walk and before
// the lock's state is read. The first call finds the lock. If the pid has changed since then, this process is
// a child of a fork that no wrapper saw. In that case this does what after_raw_fork_in_child() would have
// done for the loader.
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

// No lock is held on entry. The loader's lock is held while `visit` runs. A handler may interrupt this walk
// and walk itself, because the lock is recursive and the counters can be increased several times. A handler
// may also fork here: the parent continues, and the child finds the counters reset (hence the checks for 0).
//
// While a fork is running, this thread does not count as a walk; otherwise the walk and the fork would wait
// for each other. After 5 s this thread walks although the fork is still running. The child may then find the
// lock held, which inspect_loader_lock() detects.
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

// Counts a fork, and waits until no walk is running. Called in the thread that forks: as a handler of
// pthread_atfork(), or directly before _Fork(), clone() and syscall(). A signal handler that interrupted a
// walk of its own thread must not wait, because that walk cannot end before the handler.
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

// Resets the counters, because the parent's other threads do not exist here. After a wrapped fork the child's
// only thread calls it before any code that may walk, so it inspects the loader's lock before another thread
// can take it. After a fork without a wrapper, check_process() calls it at the first walk, in any thread. If
// another thread is in dlopen() then, the lock counts as stuck, and this child never walks.
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
