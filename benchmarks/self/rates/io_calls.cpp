// Calls that do as little as calls can, many times: what a profiler adds to each shows. Says, on standard
// output, how many nanoseconds each took, and how many milliseconds passed between the end of the work and
// the end of main().
//
//   penstock_io_calls pread FILE CALLS [THREADS]   4 KiB from random places of FILE, which is in memory
//
//   penstock_io_calls fread FILE CALLS [BYTES]     that many bytes (64) one after the other; begins again at
//   the end
//
//   penstock_io_calls make DIR FILES               files of 1 KiB
//
//   penstock_io_calls small DIR CALLS              open, fstat, read, close of as many of them
//
//   penstock_io_calls logged FILE CALLS LOG        reads of 100 bytes, each followed by how many there have
//   been, durably in LOG
//
//   penstock_io_calls slices FILE MS SLICE         as pread, for MS milliseconds; writes for each slice of
//   SLICE ms to FILE.PID.slices: begin and end (ns since 1970), calls, processor time in ns
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
constexpr size_t kFilesAFolder = 1000;
constexpr size_t kFileBytes = 1024;

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

void say(Clock::time_point begin, uint64_t calls) {
  const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  std::printf("%.2f\n", ns / double(calls));
}

// Whole ones; there is one at least.
uint64_t blocks_of(const std::string& path, const struct stat& about) {
  const auto blocks = uint64_t(about.st_size) / kBlock;
  if (blocks == 0) {
    errno = EINVAL;  // it is shorter than what is read at a time
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
  say(begin, calls);
}

void fread_pieces(const std::string& path, uint64_t calls, size_t bytes) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) fail(path);
  std::vector<char> piece(bytes);
  const Clock::time_point begin = Clock::now();
  for (uint64_t i = 0; i < calls; ++i)
    if (std::fread(piece.data(), 1, bytes, file) != bytes) std::rewind(file);
  say(begin, calls);
  std::fclose(file);
}

std::string small_file(const std::string& folder, uint64_t number) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "/%05u/%08u", unsigned(number / kFilesAFolder), unsigned(number));
  return folder + name.data();
}

void make_small_files(const std::string& folder, uint64_t files) {
  ::mkdir(folder.c_str(), 0777);
  const std::vector<char> content(kFileBytes, 'x');
  for (uint64_t i = 0; i < files; ++i) {
    const std::string name = small_file(folder, i);
    if (i % kFilesAFolder == 0) ::mkdir(name.substr(0, name.rfind('/')).c_str(), 0777);
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
  say(begin, files);
}

int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

void pread_in_slices(const std::string& path, uint64_t total_ms, uint64_t slice_ms) {
  constexpr uint64_t kCalls = 256;  // between two looks at the clock
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
  const int64_t over = clock_ns(CLOCK_REALTIME) + int64_t(total_ms) * 1'000'000;
  while (slices.empty() || slices.back().end < over) {
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
  // Ranks of a job share an output that may cut their lines.
  std::FILE* said = std::fopen((path + "." + std::to_string(::getpid()) + ".slices").c_str(), "w");
  if (said == nullptr) fail(path);
  for (const Slice& slice : slices)
    std::fprintf(said, "%lld %lld %llu %lld\n", static_cast<long long>(slice.begin),
                 static_cast<long long>(slice.end), static_cast<unsigned long long>(slice.calls),
                 static_cast<long long>(slice.processor));
  if (std::fclose(said) != 0) fail(path);
}

// Until it is killed, or has made that many.
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
