// A program whose two threads fork all the time while the profiler attaches to it. One uses fork(), and its
// children load a library. The other uses _Fork() or the system call, which run no fork handlers. Each child
// opens and reads FILE.
//
//   penstock_profile_forking FILE PLUGIN   prints "ready". For each line of input it prints the numbers of
//                                          children started, ended, hung and failed, and of walks in which
//                                          both threads tried to fork
//
// Its dl_iterate_phdr() replaces libc's. In a walk over the loaded objects it waits after the first one, up
// to 0.2 s, until both threads have tried to fork.
//
// Threads: the main thread answers input, two threads fork. The profiler's own thread walks.
// Locks: none; all shared variables are atomic, or constant once the threads run.
// Forks: children of fork() call dlopen(), which is what the test is about. The other children only use
// direct calls. A child that hangs is killed after 60 s, or with its parent (PR_SET_PDEATHSIG).
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(60);

pid_t first_process = 0;
const char* file = nullptr;
const char* plugin = nullptr;
std::atomic<unsigned> tried[2] = {};
std::atomic<unsigned> started{0};
std::atomic<unsigned> ended{0};
std::atomic<unsigned> hung{0};
std::atomic<unsigned> failed{0};
std::atomic<unsigned> tried_within{0};
std::atomic<bool> quits{false};

using Visit = int (*)(dl_phdr_info*, size_t, void*);
using Iterate = int (*)(Visit, void*);
Iterate real_iterate = nullptr;

struct Walk {
  Visit visit;
  void* with;
  unsigned objects;
};

void wait_for_forks() {
  const unsigned before[2] = {tried[0], tried[1]};
  const auto until = Clock::now() + std::chrono::milliseconds(200);
  while ((tried[0] == before[0] || tried[1] == before[1]) && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  tried_within += tried[0] != before[0] && tried[1] != before[1] ? 1 : 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
}

int visit_slowly(dl_phdr_info* about, size_t bytes, void* with) {
  auto& walk = *static_cast<Walk*>(with);
  const int result = walk.visit(about, bytes, walk.with);
  if (walk.objects++ == 0 && result == 0 && !quits) {
    wait_for_forks();
  }
  return result;
}

// Runs in the child. Other threads of the parent may have held locks at the fork; after fork() dlopen() must
// work all the same. It ends by _exit(), so no handler of exit() runs.
[[noreturn]] void be_child(bool loads) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a hung child ends with its parent
  char bytes[4096];
  const int fd = open(file, O_RDONLY);
  bool right = fd >= 0 && read(fd, bytes, sizeof(bytes)) == sizeof(bytes) && close(fd) == 0;
  if (loads) {
    void* const loaded = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    right = right && loaded != nullptr && dlsym(loaded, "penstock_plugin_read") != nullptr;
  }
  _exit(right ? 0 : 1);
}

pid_t fork_past_handlers(unsigned round) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  if (round % 2 == 0) {
    return _Fork();
  }
#endif
  return static_cast<pid_t>(syscall(SYS_fork));
}

void wait_for(pid_t pid) {
  const auto until = Clock::now() + kPatience;
  int status = 0;
  pid_t got = 0;
  while ((got = waitpid(pid, &status, WNOHANG)) == 0 && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (got == 0) {
    hung += 1;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
  } else if (got != pid || status != 0) {
    failed += 1;
  }
  ended += 1;
}

void fork_children(unsigned kind) {
  for (unsigned round = 0; !quits && hung == 0; ++round) {
    started += 1;
    tried[kind] += 1;
    const pid_t pid = kind == 0 ? fork() : fork_past_handlers(round);
    if (pid == 0) {
      be_child(kind == 0);
    }
    wait_for(pid);
  }
}

}  // namespace

// In children the walk is not slowed down: their parent's other threads do not exist there.
extern "C" __attribute__((visibility("default"))) int dl_iterate_phdr(Visit visit, void* with) {
  if (getpid() != first_process) {
    return real_iterate(visit, with);
  }
  Walk walk{.visit = visit, .with = with, .objects = 0};
  return real_iterate(&visit_slowly, &walk);
}

int main(int count, char** words) {
  if (count != 3) {
    return 2;
  }
  real_iterate = reinterpret_cast<Iterate>(dlsym(RTLD_NEXT, "dl_iterate_phdr"));
  file = words[1];
  plugin = words[2];
  first_process = getpid();
  std::thread first(&fork_children, 0);
  std::thread second(&fork_children, 1);
  std::cout << "ready" << std::endl;
  for (std::string line; !quits && std::getline(std::cin, line);) {
    quits = line == "quit";
    std::cout << started << ' ' << ended << ' ' << hung << ' ' << failed << ' ' << tried_within << std::endl;
  }
  quits = true;
  first.join();
  second.join();
  return hung == 0 && failed == 0 ? 0 : 1;
}
