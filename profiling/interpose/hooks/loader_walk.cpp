#include "profiling/interpose/hooks/loader_walk.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "profiling/interpose/writer/system.hpp"
#include "profiling/interpose/writer/ticks.hpp"

namespace penstock::interpose {

namespace {

constexpr std::int64_t kPatienceNs = 5'000'000'000;

// Who enters adds itself first and looks at the other count then (both sequentially consistent): of a walk
// and a fork that come at the same time at least one sees the other.
constinit std::atomic<unsigned> walks{0};
constinit std::atomic<unsigned> forks{0};
// This thread's own: a handler that forks on top of a walk, or one of fork()'s handlers that walks, must not
// wait for its own thread.
constinit thread_local unsigned walks_here __attribute__((tls_model("initial-exec"))) = 0;
constinit thread_local unsigned forks_here __attribute__((tls_model("initial-exec"))) = 0;

// The lock, once known. What a process knows holds for its pid: a child that was forked past all wrappers
// finds another one there.
constinit std::atomic<const pthread_mutex_t*> lock{nullptr};
constinit std::atomic<long> known_for{0};
enum class Loader { usable, unknown, stuck };
constinit std::atomic<Loader> loader{Loader::usable};
constinit std::atomic<bool> raw_child{false};

// A handler's child returns into a walk that its parent began: there is nothing to take back.
void take_one(std::atomic<unsigned>& from) noexcept {
  unsigned now = from.load();
  while (now != 0 && !from.compare_exchange_weak(now, now - 1)) {
  }
}

// False: they did not come to an end in that time.
bool wait_for_none(const std::atomic<unsigned>& of) noexcept {
  const std::int64_t until = nanoseconds(CLOCK_MONOTONIC) + kPatienceNs;
  for (unsigned tries = 0; of.load() != 0; ++tries) {
    if (nanoseconds(CLOCK_MONOTONIC) > until) {
      return false;
    }
    const timespec pause{.tv_sec = 0, .tv_nsec = 50'000};
    tries < 50 ? system_call(SYS_sched_yield) : system_call(SYS_nanosleep, word(&pause), 0);
  }
  return true;
}

// --- Where the lock is. It is a recursive mutex within the loader's _rtld_global, at a place that differs by
// version: what is this thread's within a walk, and is no more after it, is the lock.

struct Search {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  const pthread_mutex_t* found[8] = {};
  unsigned count = 0;
};

bool is_own(const pthread_mutex_t& one) noexcept {
#ifdef __GLIBC__
  const auto& data = one.__data;
  const int owner = __atomic_load_n(&data.__owner, __ATOMIC_RELAXED);
  return owner == static_cast<int>(system_call(SYS_gettid)) &&
         __atomic_load_n(&data.__lock, __ATOMIC_RELAXED) != 0 &&
         __atomic_load_n(&data.__count, __ATOMIC_RELAXED) != 0 &&
         (data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP;
#else
  return false;
#endif
}

// The lock is held, and nothing but memory is looked at.
int find_own(dl_phdr_info*, std::size_t, void* with) noexcept {
  auto& search = *static_cast<Search*>(with);
  const int self = static_cast<int>(system_call(SYS_gettid));
  for (std::uintptr_t at = search.begin; at + sizeof(pthread_mutex_t) <= search.end;
       at += alignof(pthread_mutex_t)) {
    const auto* one = reinterpret_cast<const pthread_mutex_t*>(at);
#ifdef __GLIBC__
    const bool may_be = __atomic_load_n(&one->__data.__owner, __ATOMIC_RELAXED) == self;
#else
    const bool may_be = false;
#endif
    if (may_be && is_own(*one) && search.count < 8) {
      search.found[search.count++] = one;
    }
  }
  return 1;
}

void find_lock() noexcept {
  Search search;
  void* const at = dlsym(RTLD_DEFAULT, "_rtld_global");
  Dl_info about{};
  void* symbol = nullptr;
  if (at == nullptr || dladdr1(at, &about, &symbol, RTLD_DL_SYMENT) == 0 || symbol == nullptr) {
    return;
  }
  search.begin = reinterpret_cast<std::uintptr_t>(at);
  search.end = search.begin + static_cast<const ElfW(Sym)*>(symbol)->st_size;
  dl_iterate_phdr(&find_own, &search);
  const pthread_mutex_t* only = nullptr;
  unsigned count = 0;
  for (unsigned i = 0; i < search.count; ++i) {
    if (!is_own(*search.found[i])) {
      only = search.found[i];
      ++count;
    }
  }
  if (count == 1) {
    lock.store(only);
  }
}

// In a child nobody has taken the lock since the fork where this is called first. What holds it then is a
// thread that is not there, or one that forked within a walk of its own.
void inspect_lock() noexcept {
  const pthread_mutex_t* const known = lock.load();
#ifdef __GLIBC__
  const bool held = known != nullptr && __atomic_load_n(&known->__data.__lock, __ATOMIC_RELAXED) != 0;
#else
  const bool held = false;
#endif
  loader.store(known == nullptr ? Loader::unknown : held ? Loader::stuck : Loader::usable);
  known_for.store(system_call(SYS_getpid));
}

void know_process() noexcept {
  const long known = known_for.load();
  if (known == 0) {
    known_for.store(system_call(SYS_getpid));
    walks_here += 1;
    walks.fetch_add(1);
    find_lock();
    take_one(walks);
    walks_here -= 1;
  } else if (known != system_call(SYS_getpid)) {
    forget_parents_walks();
    note_raw_fork();
  }
}

}  // namespace

int walk_objects(Visit visit, void* with) noexcept {
  know_process();
  if (loader.load() == Loader::stuck) {
    return 0;
  }
  walks_here += 1;
  walks.fetch_add(1);
  while (forks_here == 0 && forks.load() != 0) {
    take_one(walks);
    const bool none = wait_for_none(forks);
    walks.fetch_add(1);
    if (!none) {
      break;
    }
  }
  const int result = dl_iterate_phdr(visit, with);
  take_one(walks);
  walks_here -= walks_here == 0 ? 0 : 1;
  return result;
}

bool may_walk_objects() noexcept {
  know_process();
  return loader.load() == Loader::usable && forks_here == 0 && forks.load() == 0;
}

bool loader_is_stuck() noexcept {
  know_process();
  return loader.load() != Loader::usable;
}

void before_fork() noexcept {
  forks_here += 1;
  forks.fetch_add(1);
  if (walks_here == 0) {
    wait_for_none(walks);  // else the child finds the lock held, and leaves it alone
  }
}

void after_fork_in_parent() noexcept {
  take_one(forks);
  forks_here -= forks_here == 0 ? 0 : 1;
}

void forget_parents_walks() noexcept {
  walks.store(0);
  forks.store(0);
  walks_here = 0;
  forks_here = 0;
  raw_child.store(false);
  inspect_lock();
}

void note_raw_fork() noexcept {
  raw_child.store(true);
}

bool is_raw_child() noexcept {
  return raw_child.load(std::memory_order_relaxed);
}

}  // namespace penstock::interpose
