// A program whose two threads fork all the time while the profiler attaches to it. One thread uses fork(),
// and its children load a library. The other thread uses _Fork() or the system call, which run no fork
// handlers. Each child opens and reads FILE.
//
//   penstock_profile_forking FILE PLUGIN   prints "ready". For each line of input it prints the numbers of
//                                          children started, ended, hung and failed, and of walks in which
//                                          both threads tried to fork
//
// Its dl_iterate_phdr() replaces libc's. In a walk over the loaded objects it waits after the first object,
// up to 0.2 s, until both threads have tried to fork.
//
// Threads: the main thread answers input, two threads fork. The profiler's own thread walks.
// Locks: none; all shared variables are atomic, or constant once the threads run.
// Forks: children of fork() call dlopen(), which is what the test is about. The other children only open,
// read and close FILE. A child that hangs is killed after 60 s, or with its parent (PR_SET_PDEATHSIG).
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
constexpr auto kMostWait = std::chrono::seconds(60);

pid_t first_process = 0;
const char* file = nullptr;
const char* plugin = nullptr;
std::atomic<unsigned> fork_tries[2] = {};
std::atomic<unsigned> started_children{0};
std::atomic<unsigned> ended_children{0};
std::atomic<unsigned> hung_children{0};
std::atomic<unsigned> failed_children{0};
std::atomic<unsigned> walks_with_forks{0};
std::atomic<bool> quitting{false};

using Visit = int (*)(dl_phdr_info*, size_t, void*);
using Iterate = int (*)(Visit, void*);
Iterate real_iterate = nullptr;

struct Walk {
  Visit visit;
  void* context;
  unsigned objects;
};

void wait_for_forks() {
  const unsigned tries_before[2] = {fork_tries[0], fork_tries[1]};
  const auto deadline = Clock::now() + std::chrono::milliseconds(200);
  while ((fork_tries[0] == tries_before[0] || fork_tries[1] == tries_before[1]) && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  walks_with_forks += fork_tries[0] != tries_before[0] && fork_tries[1] != tries_before[1] ? 1 : 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
}

int visit_slowly(dl_phdr_info* info, size_t bytes, void* context) {
  auto& walk = *static_cast<Walk*>(context);
  const int result = walk.visit(info, bytes, walk.context);
  if (walk.objects++ == 0 && result == 0 && !quitting) {
    wait_for_forks();
  }
  return result;
}

// Runs in the child. Other threads of the parent may have held locks at the fork; after fork() dlopen() must
// work all the same. The child ends by _exit(), so no handler of exit() runs.
[[noreturn]] void run_child(bool loads) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a hung child ends with its parent
  char bytes[4096];
  const int fd = open(file, O_RDONLY);
  bool succeeded = fd >= 0 && read(fd, bytes, sizeof(bytes)) == sizeof(bytes) && close(fd) == 0;
  if (loads) {
    void* const library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    succeeded = succeeded && library != nullptr && dlsym(library, "penstock_plugin_read") != nullptr;
  }
  _exit(succeeded ? 0 : 1);
}

pid_t fork_without_handlers(unsigned round) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  if (round % 2 == 0) {
    return _Fork();
  }
#endif
  return static_cast<pid_t>(syscall(SYS_fork));
}

void wait_for(pid_t pid) {
  const auto deadline = Clock::now() + kMostWait;
  int status = 0;
  pid_t waited_pid = 0;
  while ((waited_pid = waitpid(pid, &status, WNOHANG)) == 0 && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (waited_pid == 0) {
    hung_children += 1;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
  } else if (waited_pid != pid || status != 0) {
    failed_children += 1;
  }
  ended_children += 1;
}

void fork_children(unsigned kind) {
  for (unsigned round = 0; !quitting && hung_children == 0; ++round) {
    started_children += 1;
    fork_tries[kind] += 1;
    const pid_t pid = kind == 0 ? fork() : fork_without_handlers(round);
    if (pid == 0) {
      run_child(kind == 0);
    }
    wait_for(pid);
  }
}

}  // namespace

// In children the walk is not slowed down: their parent's other threads do not exist there.
extern "C" __attribute__((visibility("default"))) int dl_iterate_phdr(Visit visit, void* context) {
  if (getpid() != first_process) {
    return real_iterate(visit, context);
  }
  Walk walk{.visit = visit, .context = context, .objects = 0};
  return real_iterate(&visit_slowly, &walk);
}

int main(int count, char** argv) {
  if (count != 3) {
    return 2;
  }
  real_iterate = reinterpret_cast<Iterate>(dlsym(RTLD_NEXT, "dl_iterate_phdr"));
  file = argv[1];
  plugin = argv[2];
  first_process = getpid();
  std::thread first_thread(&fork_children, 0);
  std::thread second_thread(&fork_children, 1);
  std::cout << "ready" << std::endl;
  for (std::string line; !quitting && std::getline(std::cin, line);) {
    quitting = line == "quit";
    std::cout << started_children << ' ' << ended_children << ' ' << hung_children << ' ' << failed_children
              << ' ' << walks_with_forks << std::endl;
  }
  quitting = true;
  first_thread.join();
  second_thread.join();
  return hung_children == 0 && failed_children == 0 ? 0 : 1;
}
