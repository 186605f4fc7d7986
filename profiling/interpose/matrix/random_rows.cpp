// Rows with many random calls. The test knows the right result: for rings the bytes that they read, for
// streams what the kernel read and wrote below them.
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

constexpr size_t kMost = 300000;  // bytes of the file
constexpr unsigned kSteps = 6000;

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  size_t below(size_t limit) { return engine_() % limit; }

 private:
  std::mt19937 engine_;
};

std::vector<char> text(Dice& dice, size_t bytes) {
  std::vector<char> made(bytes);
  for (char& c : made) c = dice.below(20) == 0 ? '\n' : char('a' + dice.below(26));
  return made;
}

// One thread calls this: getc_unlocked() takes no lock. Each case reads in another way, also by macros.
void read_somehow(std::FILE* file, Dice& dice) {
  static thread_local std::array<char, 40000> room;
  switch (dice.below(7)) {
    case 0:
      static_cast<void>(std::fread(room.data(), 1, dice.below(200) + 1, file));
      break;
    case 1:
      static_cast<void>(std::fread(room.data(), 1, dice.below(20000) + 1, file));
      break;
    case 2:
      static_cast<void>(std::fgets(room.data(), int(dice.below(200) + 2), file));
      break;
    case 3:
      for (size_t n = dice.below(100); n > 0; --n) static_cast<void>(getc_unlocked(file));
      break;
    case 4:
      static_cast<void>(std::fscanf(file, "%3999s", room.data()));
      break;
    case 5:
      if (const int byte = std::getc(file); byte != EOF) std::ungetc(byte, file);
      break;
    default:
      if (std::getc(file) != EOF) std::ungetc('Q', file);
      break;
  }
}

void write_somehow(std::FILE* file, Dice& dice, const std::vector<char>& data) {
  MATRIX_CHECK(std::fseek(file, 0, SEEK_CUR) == 0);  // the C standard requires it between a read and a write
  switch (dice.below(4)) {
    case 0:
      std::fwrite(data.data(), 1, dice.below(300), file);
      break;
    case 1:
      std::fwrite(data.data(), 1, dice.below(10000), file);
      break;
    case 2:
      for (size_t n = dice.below(50); n > 0; --n) putc_unlocked('z', file);
      break;
    default:
      std::fprintf(file, "%zu words\n", dice.below(1000));
      break;
  }
  if (dice.below(2) == 0) {
    MATRIX_CHECK(std::fflush(file) == 0);
  }
  MATRIX_CHECK(std::fseek(file, long(dice.below(kMost * 4 / 3)), SEEK_SET) == 0);
}

bool streams(const std::string& path) {
  Dice dice(12345);
  const std::vector<char> data = text(dice, kMost);
  std::FILE* file = std::fopen(path.c_str(), "w+");
  MATRIX_CHECK(file != nullptr && std::fwrite(data.data(), 1, kMost, file) == kMost);
  std::rewind(file);
  for (unsigned i = 0; i < kSteps; ++i) {
    switch (dice.below(6)) {
      case 0:
        std::fseek(file, long(dice.below(kMost * 4 / 3)), SEEK_SET);
        break;
      case 1:
        std::fseek(file, -long(dice.below(300)), SEEK_CUR);
        break;
      case 2:
        write_somehow(file, dice, data);
        break;
      default:
        read_somehow(file, dice);
        break;
    }
    if (std::feof(file) != 0) std::rewind(file);
  }
  return std::fclose(file) == 0;
}

// Several threads read from one stream at the same time; the FILE's lock orders their reads.
bool shared_stream(const std::string& path) {
  Dice dice(6);
  const std::vector<char> data = text(dice, kMost);
  std::FILE* file = std::fopen(path.c_str(), "w+");
  MATRIX_CHECK(file != nullptr && std::fwrite(data.data(), 1, kMost, file) == kMost);
  std::rewind(file);
  std::atomic<size_t> got{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        std::array<char, 90> room{};
        for (size_t n = 1; n != 0; got += n) n = std::fread(room.data(), 1, room.size(), file);
        for (size_t n = 1; n != 0; got += n) n = std::fgetc(file) == EOF ? 0 : 1;
      });
    }
  }
  MATRIX_CHECK(got == kMost);
  return std::fclose(file) == 0;
}

#ifdef PENSTOCK_WITH_URING
// Reads of random sizes through a ring; each thread has a ring of another kind. Completions are taken from
// memory without a call, and many requests have the same user data.
uint64_t read_by_ring(const std::string& path, unsigned kind) {
  constexpr std::array kFlags{0U, unsigned{IORING_SETUP_SQPOLL}, unsigned{IORING_SETUP_CLAMP}};
  io_uring ring{};
  if (::io_uring_queue_init(64, &ring, kFlags[kind % kFlags.size()]) != 0) return 0;
  const int fd = ::open(path.c_str(), O_RDONLY);
  Dice dice(kind);
  std::vector<char> room(64 * kBytes);
  uint64_t bytes = 0;
  unsigned left = kSteps;
  unsigned under_way = 0;
  while (left > 0 || under_way > 0) {
    for (size_t n = dice.below(40) + 1; n > 0 && left > 0; --n) {
      io_uring_sqe* request = ::io_uring_get_sqe(&ring);
      if (request == nullptr) break;
      ::io_uring_prep_read(request, fd, room.data() + n * kBytes, unsigned(dice.below(kBytes) + 1),
                           dice.below(kMost * 5 / 4));
      ::io_uring_sqe_set_data64(request, dice.below(3));
      --left;
      ++under_way;
    }
    MATRIX_CHECK((left == 0 || dice.below(2) == 0 ? ::io_uring_submit_and_wait(&ring, under_way > 0 ? 1 : 0)
                                                  : ::io_uring_submit(&ring)) >= 0);
    unsigned head = 0;
    unsigned now = 0;
    io_uring_cqe* completion = nullptr;
    io_uring_for_each_cqe(&ring, head, completion) {
      MATRIX_CHECK(completion->res >= 0);
      bytes += uint64_t(completion->res);
      ++now;
    }
    ::io_uring_cq_advance(&ring, now);
    under_way -= now;
  }
  ::io_uring_queue_exit(&ring);
  ::close(fd);
  return bytes;
}

bool rings(const std::string& path) {
  Dice dice(3);
  const std::vector<char> data = text(dice, kMost);
  std::FILE* file = std::fopen(path.c_str(), "w");
  MATRIX_CHECK(file != nullptr && std::fwrite(data.data(), 1, kMost, file) == kMost &&
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
