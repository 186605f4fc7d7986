// A program that starts a short worker every PAUSE microseconds while the profiler attaches to it and
// detaches again. Each worker opens and reads FILE and ends.
//
//   penstock_profile_workers FILE fork|spawn|load|family PAUSE PLUGIN   prints "ready". For each line of
//   input it
//                                                 prints the numbers of workers ended, hung and failed.
//   penstock_profile_workers FILE work     is such a worker
//
// fork:  workers are made by fork(); half of them also call dlopen(NULL), which glibc answers only if no load
//        was going on in the parent at the fork.
// load:  as fork, without dlopen() in the workers, while two threads load and unload PLUGIN all the time.
// family: a worker forks again while another thread of it makes its first calls.
// spawn: workers are made by posix_spawn(), and run this program again.
//
// Threads: the main thread answers input, one thread makes workers, two threads may load PLUGIN.
// Locks: none; all shared variables are atomic, or constant once the threads run.
// Forks: a worker calls only open(), read(), close() and, in `fork`, dlopen(). A worker that hangs is killed
// after 30 s, or with its parent (PR_SET_PDEATHSIG).
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kMostWait = std::chrono::seconds(30);

const char* program = nullptr;
const char* file = nullptr;
const char* plugin = nullptr;
std::chrono::microseconds pause_time{};
std::atomic<unsigned> ended_workers{0};
std::atomic<unsigned> hung_workers{0};
std::atomic<unsigned> failed_workers{0};
std::atomic<bool> quitting{false};

int read_files() {
  char bytes[4096];
  bool succeeded = true;
  for (int i = 0; i < 4; ++i) {
    const int fd = open(file, O_RDONLY);
    succeeded = succeeded && fd >= 0 && read(fd, bytes, sizeof(bytes)) == sizeof(bytes) && close(fd) == 0;
  }
  return succeeded ? 0 : 1;
}

// Runs in a worker: its second thread opens files for the first time while this one forks.
int fork_again() {
  std::thread reader(&read_files);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(read_files());
  }
  int status = 1;
  const bool succeeded = waitpid(pid, &status, 0) == pid && status == 0;
  reader.join();
  return succeeded ? 0 : 1;
}

pid_t start_worker(const std::string& kind, unsigned round) {
  pid_t pid = -1;
  if (kind == "spawn") {
    const char* arguments[] = {program, file, "work", nullptr};
    return posix_spawn(&pid, program, nullptr, nullptr, const_cast<char**>(arguments), environ) == 0 ? pid
                                                                                                     : -1;
  }
  pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a hung worker ends with its parent
    const bool loads = kind == "fork" && round % 2 == 1;
    if (kind == "family") {
      _exit(fork_again());
    }
    _exit((loads && dlopen(nullptr, RTLD_NOW) == nullptr) ? 2 : read_files());
  }
  return pid;
}

struct Worker {
  pid_t pid;
  Clock::time_point begin;
};

// Ends as soon as a worker has hung, so that a failing test does not last.
void make_workers(const std::string& kind) {
  std::deque<Worker> workers;
  for (unsigned round = 0; (!quitting || !workers.empty()) && hung_workers == 0; ++round) {
    if (!quitting) {
      workers.push_back({start_worker(kind, round), Clock::now()});
    }
    std::this_thread::sleep_for(pause_time);
    for (size_t left = workers.size(); left != 0; --left) {
      const Worker worker = workers.front();
      workers.pop_front();
      int status = 0;
      const pid_t waited_pid = waitpid(worker.pid, &status, WNOHANG);
      if (waited_pid != 0) {
        ended_workers += 1;
        failed_workers += waited_pid != worker.pid || status != 0 ? 1 : 0;
      } else if (Clock::now() - worker.begin > kMostWait) {
        kill(worker.pid, SIGKILL);
        waitpid(worker.pid, &status, 0);
        hung_workers += 1;
      } else {
        workers.push_back(worker);
      }
    }
  }
}

void load_and_unload() {
  while (!quitting) {
    if (void* const library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL); library != nullptr) {
      dlclose(library);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace

int main(int count, char** argv) {
  if (count < 3) {
    return 2;
  }
  program = argv[0];
  file = argv[1];
  const std::string kind = argv[2];
  if (kind == "work") {
    return read_files();
  }
  if (count != 5) {
    return 2;
  }
  pause_time = std::chrono::microseconds(std::stoul(argv[3]));
  plugin = argv[4];
  std::vector<std::thread> threads;
  threads.emplace_back(&make_workers, kind);
  for (int i = 0; kind == "load" && i < 2; ++i) {
    threads.emplace_back(&load_and_unload);
  }
  std::cout << "ready" << std::endl;
  for (std::string line; !quitting && std::getline(std::cin, line);) {
    quitting = line == "quit";
    std::cout << ended_workers << ' ' << hung_workers << ' ' << failed_workers << std::endl;
  }
  quitting = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  return hung_workers == 0 && failed_workers == 0 ? 0 : 1;
}
