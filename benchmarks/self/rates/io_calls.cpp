// Makes many cheap I/O calls, so that the time that a profiler adds to each call is visible. pread, fread and
// small print on standard output how many nanoseconds each call took. For small, the four calls on one file
// count as one. With THREADS, each thread of pread makes CALLS calls.
//
//   penstock_io_calls pread FILE CALLS [THREADS]   reads 4 KiB at random offsets of FILE, which is in memory
//
//   penstock_io_calls fread FILE CALLS [BYTES]     reads BYTES bytes (64) per call, in order; begins again at
//   the end of FILE
//
//   penstock_io_calls make DIR FILES               makes files of 1 KiB
//
//   penstock_io_calls small DIR CALLS              open, fstat, read and close of the first CALLS of these
//   files
//
//   penstock_io_calls logged FILE CALLS LOG        reads of 100 bytes; after each, writes the number of reads
//   so far durably to LOG
//
//   penstock_io_calls slices FILE MS SLICE         as pread, for MS milliseconds; writes one line for each
//   slice of SLICE ms to FILE.PID.slices: begin and end (ns since 1970), calls, processor time in ns
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBlock = 4096;
constexpr size_t kFilesPerFolder = 1000;
constexpr size_t kFileBytes = 1024;

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

void print_ns_per_call(Clock::time_point begin, uint64_t calls) {
  const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  std::printf("%.2f\n", ns / double(calls));
}

// The number of whole blocks in the file. Fails if there is none.
uint64_t blocks_of(const std::string& path, const struct stat& about) {
  const auto blocks = uint64_t(about.st_size) / kBlock;
  if (blocks == 0) {
    errno = EINVAL;  // the file is shorter than one block
    fail(path);
  }
  return blocks;
}

void pread_blocks(const std::string& path, uint64_t calls, uint64_t seed) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about {};
  if (fd < 0 || ::fstat(fd, &about) != 0) fail(path);
  const uint64_t blocks = blocks_of(path, about);
  alignas(kBlock) std::array<char, kBlock> block;
  uint64_t place = seed;
  for (uint64_t i = 0; i < calls; ++i) {
    place = place * 6364136223846793005U + 1442695040888963407U;
    const uint64_t at = (place >> 33U) % blocks * kBlock;
    if (::pread(fd, block.data(), kBlock, off_t(at)) != ssize_t(kBlock)) fail(path);
  }
  ::close(fd);
}

void pread_on_threads(const std::string& path, uint64_t calls, unsigned threads) {
  const Clock::time_point begin = Clock::now();
  {
    std::vector<std::jthread> all;
    for (unsigned i = 0; i < threads; ++i)
      all.emplace_back([&path, calls, i] { pread_blocks(path, calls, i + 1); });
  }
  print_ns_per_call(begin, calls);
}

void fread_pieces(const std::string& path, uint64_t calls, size_t bytes) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) fail(path);
  std::vector<char> piece(bytes);
  const Clock::time_point begin = Clock::now();
  for (uint64_t i = 0; i < calls; ++i)
    if (std::fread(piece.data(), 1, bytes, file) != bytes) std::rewind(file);
  print_ns_per_call(begin, calls);
  std::fclose(file);
}

std::string small_file(const std::string& folder, uint64_t number) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "/%05u/%08u", unsigned(number / kFilesPerFolder), unsigned(number));
  return folder + name.data();
}

void make_small_files(const std::string& folder, uint64_t files) {
  ::mkdir(folder.c_str(), 0777);
  const std::vector<char> content(kFileBytes, 'x');
  for (uint64_t i = 0; i < files; ++i) {
    const std::string name = small_file(folder, i);
    if (i % kFilesPerFolder == 0) ::mkdir(name.substr(0, name.rfind('/')).c_str(), 0777);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || ::write(fd, content.data(), content.size()) != ssize_t(content.size())) fail(name);
    ::close(fd);
  }
}

void read_small_files(const std::string& folder, uint64_t files) {
  std::array<char, 2 * kFileBytes> content;
  const Clock::time_point begin = Clock::now();
  for (uint64_t i = 0; i < files; ++i) {
    const std::string name = small_file(folder, i);
    const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about {};
    if (fd < 0 || ::fstat(fd, &about) != 0 || ::read(fd, content.data(), content.size()) < 0) fail(name);
    ::close(fd);
  }
  print_ns_per_call(begin, files);
}

int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

void pread_in_slices(const std::string& path, uint64_t total_ms, uint64_t slice_ms) {
  constexpr uint64_t kCalls = 256;  // number of calls between two clock reads
  struct Slice {
    int64_t begin;
    int64_t end;
    uint64_t calls;
    int64_t processor;
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about {};
  if (fd < 0 || ::fstat(fd, &about) != 0) fail(path);
  const uint64_t blocks = blocks_of(path, about);
  alignas(kBlock) std::array<char, kBlock> block;
  uint64_t place = uint64_t(::getpid());
  std::vector<Slice> slices;
  slices.reserve(total_ms / slice_ms + 16);
  const int64_t end_ns = clock_ns(CLOCK_REALTIME) + int64_t(total_ms) * 1'000'000;
  while (slices.empty() || slices.back().end < end_ns) {
    const int64_t processor = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    Slice slice{clock_ns(CLOCK_REALTIME), 0, 0, 0};
    const int64_t due = slice.begin + int64_t(slice_ms) * 1'000'000;
    while (slice.end < due) {
      for (uint64_t i = 0; i < kCalls; ++i) {
        place = place * 6364136223846793005U + 1442695040888963407U;
        const uint64_t at = (place >> 33U) % blocks * kBlock;
        if (::pread(fd, block.data(), kBlock, off_t(at)) != ssize_t(kBlock)) fail(path);
      }
      slice.calls += kCalls;
      slice.end = clock_ns(CLOCK_REALTIME);
    }
    slice.processor = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - processor;
    slices.push_back(slice);
  }
  // Each rank of a job writes to a file of its own. On the shared standard output, the lines of several ranks
  // may get mixed.
  std::FILE* slices_file = std::fopen((path + "." + std::to_string(::getpid()) + ".slices").c_str(), "w");
  if (slices_file == nullptr) fail(path);
  for (const Slice& slice : slices)
    std::fprintf(slices_file, "%lld %lld %llu %lld\n", static_cast<long long>(slice.begin),
                 static_cast<long long>(slice.end), static_cast<unsigned long long>(slice.calls),
                 static_cast<long long>(slice.processor));
  if (std::fclose(slices_file) != 0) fail(path);
}

// Reads and logs `calls` times, or until it is killed.
void read_and_log(const std::string& path, uint64_t calls, const std::string& log_path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 || log < 0) fail(fd < 0 ? path : log_path);
  std::array<char, 100> piece;
  for (uint64_t done = 1; done <= calls; ++done) {
    if (::pread(fd, piece.data(), piece.size(), 0) != ssize_t(piece.size())) fail(path);
    if (::pwrite(log, &done, sizeof(done), 0) != ssize_t(sizeof(done)) || ::fdatasync(log) != 0)
      fail(log_path);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    std::fputs(
        "usage: penstock_io_calls pread|fread|small|make|logged|slices PATH CALLS "
        "[THREADS|BYTES|LOG|SLICE]\n",
        stderr);
    return 2;
  }
  const std::string_view kind = words[1];
  const std::string path = words[2];
  const uint64_t calls = std::strtoull(words[3], nullptr, 10);
  const unsigned long more = count > 4 ? std::strtoul(words[4], nullptr, 10) : 0;
  if (kind == "pread") pread_on_threads(path, calls, more == 0 ? 1 : unsigned(more));
  if (kind == "fread") fread_pieces(path, calls, more == 0 ? 64 : more);
  if (kind == "small") read_small_files(path, calls);
  if (kind == "slices") pread_in_slices(path, calls, more == 0 ? 50 : more);
  if (kind == "logged") read_and_log(path, calls, count > 4 ? words[4] : path + ".log");
  if (kind == "make") make_small_files(path, calls);
  return 0;
}
