// Rows of the coverage matrix (matrix.hpp) with many calls, most of them random. The test
// (ci/e2e/profile_matrix.py) compares what the profiler counted: for rings() with the number of bytes that it
// prints, for streams() with what the kernel counted for the process (rchar, wchar), and for shared_stream()
// with the size of its file.
//
// Threads: streams() has one. shared_stream() and rings() have three each, which add to an atomic sum. In
// rings() each thread has a ring of its own.
// Locks: only those of stdio's FILE.
// Signals and forks: none.
#ifdef PENSTOCK_WITH_URING
#include <liburing.h>
#endif
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "profiling/interpose/matrix/matrix.hpp"

namespace penstock::matrix {

namespace {

constexpr size_t kFileBytes = 300000;
constexpr unsigned kSteps = 6000;

class RandomSource {
 public:
  explicit RandomSource(unsigned seed) : engine_(seed) {}
  size_t below(size_t limit) { return engine_() % limit; }

 private:
  std::mt19937 engine_;
};

std::vector<char> random_text(RandomSource& random_source, size_t bytes) {
  std::vector<char> result(bytes);
  for (char& c : result) c = random_source.below(20) == 0 ? '\n' : char('a' + random_source.below(26));
  return result;
}

// Only one thread may call this, because getc_unlocked() takes no lock. Each case reads in a different way;
// some use macros.
void read_in_random_way(std::FILE* file, RandomSource& random_source) {
  static thread_local std::array<char, 40000> buffer;
  switch (random_source.below(7)) {
    case 0:
      static_cast<void>(std::fread(buffer.data(), 1, random_source.below(200) + 1, file));
      break;
    case 1:
      static_cast<void>(std::fread(buffer.data(), 1, random_source.below(20000) + 1, file));
      break;
    case 2:
      static_cast<void>(std::fgets(buffer.data(), int(random_source.below(200) + 2), file));
      break;
    case 3:
      for (size_t n = random_source.below(100); n > 0; --n) static_cast<void>(getc_unlocked(file));
      break;
    case 4:
      static_cast<void>(std::fscanf(file, "%3999s", buffer.data()));
      break;
    case 5:
      if (const int byte = std::getc(file); byte != EOF) std::ungetc(byte, file);
      break;
    default:
      if (std::getc(file) != EOF) std::ungetc('Q', file);
      break;
  }
}

void write_in_random_way(std::FILE* file, RandomSource& random_source, const std::vector<char>& data) {
  // The C standard requires a seek between a read and a write.
  MATRIX_CHECK(std::fseek(file, 0, SEEK_CUR) == 0);
  switch (random_source.below(4)) {
    case 0:
      std::fwrite(data.data(), 1, random_source.below(300), file);
      break;
    case 1:
      std::fwrite(data.data(), 1, random_source.below(10000), file);
      break;
    case 2:
      for (size_t n = random_source.below(50); n > 0; --n) putc_unlocked('z', file);
      break;
    default:
      std::fprintf(file, "%zu words\n", random_source.below(1000));
      break;
  }
  if (random_source.below(2) == 0) {
    MATRIX_CHECK(std::fflush(file) == 0);
  }
  MATRIX_CHECK(std::fseek(file, long(random_source.below(kFileBytes * 4 / 3)), SEEK_SET) == 0);
}

bool streams(const std::string& path) {
  RandomSource random_source(12345);
  const std::vector<char> data = random_text(random_source, kFileBytes);
  std::FILE* file = std::fopen(path.c_str(), "w+");
  MATRIX_CHECK(file != nullptr && std::fwrite(data.data(), 1, kFileBytes, file) == kFileBytes);
  std::rewind(file);
  for (unsigned i = 0; i < kSteps; ++i) {
    switch (random_source.below(6)) {
      case 0:
        std::fseek(file, long(random_source.below(kFileBytes * 4 / 3)), SEEK_SET);
        break;
      case 1:
        std::fseek(file, -long(random_source.below(300)), SEEK_CUR);
        break;
      case 2:
        write_in_random_way(file, random_source, data);
        break;
      default:
        read_in_random_way(file, random_source);
        break;
    }
    if (std::feof(file) != 0) std::rewind(file);
  }
  return std::fclose(file) == 0;
}

// Several threads read from one stream at the same time; the FILE's lock orders their reads.
bool shared_stream(const std::string& path) {
  RandomSource random_source(6);
  const std::vector<char> data = random_text(random_source, kFileBytes);
  std::FILE* file = std::fopen(path.c_str(), "w+");
  MATRIX_CHECK(file != nullptr && std::fwrite(data.data(), 1, kFileBytes, file) == kFileBytes);
  std::rewind(file);
  std::atomic<size_t> bytes_read{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        std::array<char, 90> buffer{};
        for (size_t n = 1; n != 0; bytes_read += n) n = std::fread(buffer.data(), 1, buffer.size(), file);
        for (size_t n = 1; n != 0; bytes_read += n) n = std::fgetc(file) == EOF ? 0 : 1;
      });
    }
  }
  MATRIX_CHECK(bytes_read == kFileBytes);
  return std::fclose(file) == 0;
}

#ifdef PENSTOCK_WITH_URING
// Makes reads of random sizes through a ring. `kind` chooses the flags of the ring, so each thread has
// different flags. Completions are taken from memory without a call, and many requests have the same user
// data.
uint64_t read_by_ring(const std::string& path, unsigned kind) {
  constexpr std::array kFlags{0U, unsigned{IORING_SETUP_SQPOLL}, unsigned{IORING_SETUP_CLAMP}};
  io_uring ring{};
  if (::io_uring_queue_init(64, &ring, kFlags[kind % kFlags.size()]) != 0) return 0;
  const int fd = ::open(path.c_str(), O_RDONLY);
  RandomSource random_source(kind);
  std::vector<char> buffer(64 * kBytes);
  uint64_t bytes = 0;
  unsigned requests_left = kSteps;
  unsigned in_flight = 0;
  while (requests_left > 0 || in_flight > 0) {
    for (size_t n = random_source.below(40) + 1; n > 0 && requests_left > 0; --n) {
      io_uring_sqe* request = ::io_uring_get_sqe(&ring);
      if (request == nullptr) break;
      ::io_uring_prep_read(request, fd, buffer.data() + n * kBytes, unsigned(random_source.below(kBytes) + 1),
                           random_source.below(kFileBytes * 5 / 4));
      ::io_uring_sqe_set_data64(request, random_source.below(3));
      --requests_left;
      ++in_flight;
    }
    MATRIX_CHECK((requests_left == 0 || random_source.below(2) == 0
                      ? ::io_uring_submit_and_wait(&ring, in_flight > 0 ? 1 : 0)
                      : ::io_uring_submit(&ring)) >= 0);
    unsigned head = 0;
    unsigned completion_count = 0;
    io_uring_cqe* completion = nullptr;
    io_uring_for_each_cqe(&ring, head, completion) {
      MATRIX_CHECK(completion->res >= 0);
      bytes += uint64_t(completion->res);
      ++completion_count;
    }
    ::io_uring_cq_advance(&ring, completion_count);
    in_flight -= completion_count;
  }
  ::io_uring_queue_exit(&ring);
  ::close(fd);
  return bytes;
}

bool rings(const std::string& path) {
  RandomSource random_source(3);
  const std::vector<char> data = random_text(random_source, kFileBytes);
  std::FILE* file = std::fopen(path.c_str(), "w");
  MATRIX_CHECK(file != nullptr && std::fwrite(data.data(), 1, kFileBytes, file) == kFileBytes &&
               std::fclose(file) == 0);
  std::atomic<uint64_t> bytes{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 3; ++t) threads.emplace_back([&, t] { bytes += read_by_ring(path, t); });
  }
  if (bytes == 0) return false;
  std::fprintf(stderr, "read: rings_at_random %llu\n", static_cast<unsigned long long>(bytes.load()));
  return true;
}
#else
bool rings(const std::string&) {
  return false;
}
#endif

constexpr Row kRows[] = {
    {"random", "streams_at_random_write", streams},
    {"random", "stream_of_threads_write", shared_stream},
    {"random", "rings_at_random_write", rings},
};

}  // namespace

std::span<const Row> random_rows() {
  return kRows;
}

}  // namespace penstock::matrix
