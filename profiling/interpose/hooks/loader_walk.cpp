// Keeps walks over the loaded objects and forks from happening at the same time (loader_walk.hpp). It uses
// two counters instead of a lock: the number of running walks, and the number of running forks.
//
// Threads: any thread, in a wrapped call or around its fork.
// Locks: none of this library. dl_iterate_phdr() holds the loader's lock while it visits. A mutex cannot be
// used in place of the counters, because one thread may walk and fork at once: a signal handler may fork
// during a walk, and a handler of pthread_atfork() may walk during a fork.
// Waiting: by polling, for at most 5 s, so this waiting cannot become a deadlock. The counters are
// sequentially consistent, because walks and forks rely on the order of reads and writes (see `walks`).
// Memory: nothing is allocated, except by find_loader_lock() at the first walk of a process.
// Signals: not blocked. If a handler walks or forks during a walk of its own thread, it increases its counter
// once more.
// Forks: a child resets the counters and inspects the loader's lock (forget_parents_walks()).
#include "profiling/interpose/hooks/loader_walk.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "profiling/interpose/counting/thread_log.hpp"
#include "profiling/interpose/hooks/libc_names.hpp"
#include "profiling/interpose/writer/session.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

namespace {

constexpr int64_t kMostWaitNs = 5'000'000'000;
constexpr unsigned kMostTries = 200'000;  // a bound also if the clock stands still

// The numbers of running walks and forks. A walk or a fork first increases its own counter, and then reads
// the other counter. So if a walk and a fork begin at the same time, at least one of them sees the other and
// waits. If each read first and increased later, neither might see the other, and both would run.
constinit std::atomic<unsigned> walks{0};
constinit std::atomic<unsigned> forks{0};
// How many of the running walks and forks are this thread's own. A thread must not wait for itself: a signal
// handler may fork during a walk of its own thread, and a handler of pthread_atfork() may walk during its
// fork.
constinit thread_local unsigned walks_of_thread __attribute__((tls_model("initial-exec"))) = 0;
constinit thread_local unsigned forks_of_thread __attribute__((tls_model("initial-exec"))) = 0;

// The loader's lock; null until it is known.
constinit std::atomic<const pthread_mutex_t*> loader_lock{nullptr};
// The process that found or inspected the loader's lock. If getpid() is another number, this process is a
// child of a fork that no wrapper saw, and must inspect the lock itself.
constinit std::atomic<long> noted_pid{0};
enum class LoaderState { usable, unknown, stuck };
constinit std::atomic<LoaderState> loader{LoaderState::usable};
constinit std::atomic<bool> fork_child{false};  // is_fork_child()

using Iterate = int (*)(Visit, void*);
constinit std::atomic<Iterate> found_iterate{nullptr};  // iterate_function()

// The dl_iterate_phdr() to call: libc's, or the program's own if it has one. One of another preloaded library
// may change the names that it passes on, or crash in the library's constructor (libfakechroot's). Asks the
// loader once, which takes its lock; in a fork's child it does not ask.
Iterate iterate_function() noexcept {
  Iterate function = found_iterate.load(std::memory_order_relaxed);
  if (function != nullptr) {
    return function;
  }
  function = &dl_iterate_phdr;
  if (!knows_libc() || fork_child.load(std::memory_order_relaxed)) {
    return function;
  }
  const link_map* const object = object_of(reinterpret_cast<void*>(function));
  const bool is_of_program = object != nullptr && object->l_prev == nullptr;
  if (void* const libc_version = libc_function("dl_iterate_phdr");
      libc_version != nullptr && !is_of_program) {
    function = reinterpret_cast<Iterate>(libc_version);
  }
  found_iterate.store(function, std::memory_order_relaxed);
  return function;
}

// Subtracts one, but not below 0. The counter may be 0 already: if a handler forks during a walk, the child
// resets the counter, returns from the handler, and then ends that walk.
void subtract_one(std::atomic<unsigned>& counter) noexcept {
  unsigned value = counter.load();
  while (value != 0 && !counter.compare_exchange_weak(value, value - 1)) {
  }
}

// Waits until the counter is 0. Returns false if it is still not 0 after 5 s. Makes direct system calls only,
// because it runs inside the program's calls, perhaps in a handler.
bool wait_until_zero(const std::atomic<unsigned>& counter) noexcept {
  const int64_t until = nanoseconds(CLOCK_MONOTONIC) + kMostWaitNs;
  for (unsigned tries = 0; counter.load() != 0; ++tries) {
    if (nanoseconds(CLOCK_MONOTONIC) > until || tries > kMostTries) {
      return false;
    }
    const timespec pause_time{.tv_sec = 0, .tv_nsec = 50'000};
    tries < 50 ? system_call(SYS_sched_yield) : system_call(SYS_nanosleep, as_argument(&pause_time), 0);
  }
  return true;
}

// --- Finding the loader's lock. It is a recursive mutex inside the loader's _rtld_global, at an offset that
// depends on glibc's version. It is the one mutex there that this thread owns during a walk and does not own
// after it.

struct MutexSearch {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  const pthread_mutex_t* mutexes[8] = {};
  unsigned mutex_count = 0;
};

// Whether this thread owns the mutex. Takes no lock. Reads glibc's private fields of the mutex atomically,
// because other threads may change them meanwhile.
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
// holds the loader's lock. It only reads memory. It returns 1 to end the walk after the first object.
int find_own_mutex(dl_phdr_info*, size_t, void* context) noexcept {
  auto& search = *static_cast<MutexSearch*>(context);
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
// in a process, by check_process(), usually in the library's constructor. It calls dlsym() and dladdr1(),
// which take locks of the loader and may allocate; nothing else in this file does.
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
  iterate_function()(&find_own_mutex, &search);
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

// Finds out whether the loader's lock is held in a fork's child, and stores the answer in `loader`. Called
// before the child's first walk. After a wrapped fork no other thread of the child can have taken the lock
// yet. So if it is held, either its owner does not exist here, or this thread forked inside a walk of its
// own.
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

// Makes sure that this process knows the state of the loader's lock. Called before each walk and before the
// state is read. The first call finds the lock. If the pid has changed since then, this process is a child of
// a fork that no wrapper saw, and does what after_fork_in_child() (wrap_processes.cpp) does after a wrapped
// fork. vfork's child is no such child: it runs in its parent's memory, and changes nothing here.
void check_process() noexcept {
  if (log_suspended()) {
    return;
  }
  const long known_pid = noted_pid.load();
  if (known_pid == 0) {
    noted_pid.store(system_call(SYS_getpid));
    note_libc();  // constructors of other libraries may come before this library's
    walks_of_thread += 1;
    walks.fetch_add(1);
    find_loader_lock();
    subtract_one(walks);
    walks_of_thread -= 1;
  } else if (known_pid != system_call(SYS_getpid)) {
    forget_parents_walks();
  }
}

}  // namespace

// Visits all objects, under the loader's lock. No lock is held on entry. A handler may interrupt this walk
// and walk itself, because the lock is recursive and the counters can be increased several times. A handler
// may also fork here. Then the walk continues in both processes; in the child the counters have been reset,
// so they are not decreased below 0.
//
// While this thread waits for a fork, its walk is not counted in `walks`; otherwise the walk and the fork
// would wait for each other. After 5 s it walks although the fork is still running. The child of that fork
// may then find the lock held; inspect_loader_lock() detects that.
int walk_objects(Visit visit, void* context) noexcept {
  check_process();
  if (loader.load() == LoaderState::stuck) {
    return 0;
  }
  walks_of_thread += 1;
  walks.fetch_add(1);
  while (forks_of_thread == 0 && forks.load() != 0) {
    subtract_one(walks);
    const bool no_forks = wait_until_zero(forks);
    walks.fetch_add(1);
    if (!no_forks) {
      break;
    }
  }
  const int result = iterate_function()(visit, context);
  subtract_one(walks);
  walks_of_thread -= walks_of_thread == 0 ? 0 : 1;
  return result;
}

// Takes no lock. A fork may begin right after this check. That is harmless: walk_objects() then waits for the
// fork.
bool may_walk_objects() noexcept {
  check_process();
  return loader.load() == LoaderState::usable && forks_of_thread == 0 && forks.load() == 0;
}

// Takes no lock. Returns true also if the loader's lock was never found, because its state is not known then.
bool loader_is_stuck() noexcept {
  check_process();
  return loader.load() != LoaderState::usable;
}

// Counts a fork, and waits until no walk is running. Called in the thread that forks: as a handler of
// pthread_atfork(), or directly before _Fork(), clone() and syscall(). Does not wait if this thread itself is
// in a walk, which a signal handler has interrupted: the walk cannot continue before the handler ends.
void before_fork() noexcept {
  forks_of_thread += 1;
  forks.fetch_add(1);
  if (walks_of_thread == 0) {
    // After 5 s the program forks although a walk is still running. If the child then finds the loader's lock
    // held, the child never walks.
    wait_until_zero(walks);
  }
}

void after_fork_in_parent() noexcept {
  subtract_one(forks);
  forks_of_thread -= forks_of_thread == 0 ? 0 : 1;
}

// Resets the counters, because the parent's other threads do not exist here, and inspects the loader's lock.
// After a wrapped fork the child's only thread calls this before any code that may walk. So no other thread
// can have taken the lock before it is inspected.
// After a fork without a wrapper, check_process() calls this at the first walk, in any thread. If another
// thread is in dlopen() at that moment, the lock counts as stuck, and this child never walks.
void forget_parents_walks() noexcept {
  walks.store(0);
  forks.store(0);
  walks_of_thread = 0;
  forks_of_thread = 0;
  fork_child.store(true);
  inspect_loader_lock();
}

bool is_fork_child() noexcept {
  check_process();
  return fork_child.load(std::memory_order_relaxed);
}

}  // namespace penstock::interpose
