// A busy program for tests that attach the profiler to a running process. Three threads read files whose
// bytes are all known, check each byte, and log each call. Other threads allocate memory, load and unload a
// library, and start and end short threads. A signal handler interrupts them and reads too. The main thread
// executes commands from stdin:
//
//   batch N      reads N times 4,096 bytes and prints how many bytes it got
//   plugin N     the same as batch N, but a library that it loads makes the reads
//   quit         ends, prints how many bytes were wrong, and writes the log
//
//   penstock_profile_busy FOLDER PLUGIN LOG
//
// Threads: each reading thread has its own file and its own log.
// Locks: none; shared variables are atomic, or constant once the threads run.
// Signals: SIGALRM every 2 ms, in any thread. Its handler only calls pread() and adds to atomics.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kFileBytes = 1 << 20;
constexpr size_t kFiles = 8;
constexpr size_t kReadBytes = 16384;

struct Call {
  int64_t begin_ns;
  int64_t end_ns;
  uint64_t bytes;
};

std::atomic<bool> stopping{false};
std::atomic<uint64_t> wrong_bytes{0};
std::atomic<uint64_t> handled_signals{0};
int handler_fd = -1;
std::string folder;

char content(size_t file, size_t at) {
  return char((at * 2654435761U >> 7U) + file * 31);
}
std::string name_of(size_t file) {
  return folder + "/f" + std::to_string(file);
}

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

void make_files() {
  std::vector<char> bytes(kFileBytes);
  for (size_t file = 0; file < kFiles; ++file) {
    for (size_t i = 0; i < kFileBytes; ++i) bytes[i] = content(file, i);
    FILE* out = fopen(name_of(file).c_str(), "w");
    if (out == nullptr || fwrite(bytes.data(), 1, kFileBytes, out) != kFileBytes || fclose(out) != 0) {
      perror("cannot make the files");
      exit(2);
    }
  }
}

void check(const char* bytes, ssize_t count, size_t wanted_bytes, size_t file, size_t at) {
  if (count != ssize_t(wanted_bytes)) wrong_bytes += wanted_bytes;
  for (size_t i = 0; count > 0 && i < size_t(count); ++i)
    if (bytes[i] != content(file, at + i)) ++wrong_bytes;
}

// Reads a file until the end of the program, in turn by a descriptor that stays open, a newly opened
// descriptor and a stream.
void read_until_stopped(size_t file, std::vector<Call>& log) {
  std::vector<char> bytes(kReadBytes);
  const int kept_fd = open(name_of(file).c_str(), O_RDONLY);
  for (size_t round = 0; !stopping; ++round) {
    const size_t at = round * 7919 * 64 % (kFileBytes - kReadBytes);
    Call call{now_ns(), 0, kReadBytes};
    if (round % 4 == 3) {
      FILE* in = fopen(name_of(file).c_str(), "r");
      setvbuf(in, nullptr, _IOFBF, kReadBytes);
      check(bytes.data(), ssize_t(fread(bytes.data(), 1, kReadBytes, in)), kReadBytes, file, 0);
      fclose(in);
    } else if (round % 4 == 2) {
      const int fd = open(name_of(file).c_str(), O_RDONLY);
      check(bytes.data(), read(fd, bytes.data(), kReadBytes), kReadBytes, file, 0);
      close(fd);
    } else {
      check(bytes.data(), pread(kept_fd, bytes.data(), kReadBytes, off_t(at)), kReadBytes, file, at);
    }
    call.end_ns = now_ns();
    log.push_back(call);
  }
  close(kept_fd);
}

void allocate() {
  std::vector<void*> allocations(64);
  for (size_t i = 0; !stopping; ++i) {
    void*& allocation = allocations[i % allocations.size()];
    free(allocation);
    allocation = malloc(i * 977 % 300'000 + 16);
    if (allocation != nullptr) memset(allocation, 1, 16);
  }
  for (void* allocation : allocations) free(allocation);
}

void load_and_unload(const char* plugin) {
  while (!stopping) {
    void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      ++wrong_bytes;
      return;
    }
    usleep(500);
    dlclose(library);
  }
}

void start_short_threads() {
  while (!stopping) {
    std::thread([] {
      char bytes[512];
      const int fd = open(name_of(kFiles - 1).c_str(), O_RDONLY);
      check(bytes, read(fd, bytes, sizeof bytes), sizeof bytes, kFiles - 1, 0);
      close(fd);
    }).join();
    usleep(2000);
  }
}

// The handler of SIGALRM. It may interrupt any thread, also inside malloc or dlopen(). So it takes no lock
// and allocates no memory.
void on_alarm(int) {
  char bytes[64];
  const ssize_t count = pread(handler_fd, bytes, sizeof bytes, 0);
  for (ssize_t i = 0; i < count; ++i)
    if (bytes[i] != content(kFiles - 2, size_t(i))) wrong_bytes += 1;
  handled_signals += 1;
}

size_t batch(size_t count) {
  std::vector<char> bytes(4096);
  const int fd = open((folder + "/batch").c_str(), O_RDONLY);
  size_t total_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    const ssize_t bytes_read = pread(fd, bytes.data(), bytes.size(), 0);
    check(bytes.data(), bytes_read, bytes.size(), 0, 0);
    total_bytes += bytes_read > 0 ? size_t(bytes_read) : 0;
  }
  close(fd);
  return total_bytes;
}

size_t read_by_plugin(const char* plugin, size_t count) {
  void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  using Read = size_t (*)(const char* path, size_t count);
  const auto read_file =
      library == nullptr ? nullptr : reinterpret_cast<Read>(dlsym(library, "penstock_plugin_read"));
  const size_t total_bytes = read_file == nullptr ? 0 : read_file((folder + "/plugin").c_str(), count);
  if (library != nullptr) dlclose(library);
  return total_bytes;
}

void write_first_bytes(const char* to) {
  std::vector<char> bytes(4096);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = content(0, i);
  FILE* out = fopen((folder + to).c_str(), "w");
  fwrite(bytes.data(), 1, bytes.size(), out);
  fclose(out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fputs("penstock_profile_busy FOLDER PLUGIN LOG\n", stderr);
    return 2;
  }
  folder = argv[1];
  make_files();
  write_first_bytes("/batch");
  write_first_bytes("/plugin");
  handler_fd = open(name_of(kFiles - 2).c_str(), O_RDONLY);
  struct sigaction action {};
  action.sa_handler = &on_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval interval{{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &interval, nullptr);
  std::vector<std::vector<Call>> logs(3);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < logs.size(); ++i) threads.emplace_back([&, i] { read_until_stopped(i, logs[i]); });
  threads.emplace_back(&allocate);
  threads.emplace_back(&load_and_unload, argv[2]);
  threads.emplace_back(&start_short_threads);
  puts("ready");
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin) != nullptr) {
    size_t count = 0;
    if (sscanf(line, "batch %zu", &count) == 1) {
      printf("%zu\n", batch(count));
    } else if (sscanf(line, "plugin %zu", &count) == 1) {
      printf("%zu\n", read_by_plugin(argv[2], count));
    } else {
      break;
    }
    fflush(stdout);
  }
  stopping = true;
  for (std::thread& thread : threads) thread.join();
  FILE* out = fopen(argv[3], "w");
  for (const std::vector<Call>& log : logs) fwrite(log.data(), sizeof(Call), log.size(), out);
  fclose(out);
  printf("%llu wrong, %llu handled\n", static_cast<unsigned long long>(wrong_bytes),
         static_cast<unsigned long long>(handled_signals));
  return wrong_bytes == 0 ? 0 : 1;
}
