// Rows of the matrix (matrix.hpp) for io_uring, through liburing and by system call numbers.
//
// Threads: one thread uses each ring. With IORING_SETUP_SQPOLL a thread of the kernel takes the ring's
// requests.
// Locks: none; program and kernel share the ring's memory (transfer_by_number() stores its tail with
// release).
// Memory: `block` must not change while a request is in flight, so each row waits for all its completions.
#ifdef PENSTOCK_WITH_URING
#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#endif

#include "profiling/interpose/matrix/matrix.hpp"

namespace penstock::matrix {

namespace {

#ifdef PENSTOCK_WITH_URING

constexpr auto kWhole = int(kBytes);

int open_for(const std::string& path, bool writes) {
  const int fd = ::open(path.c_str(), writes ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0600);
  MATRIX_CHECK(fd >= 0);
  return fd;
}

int next_result(io_uring& ring) {
  io_uring_cqe* completion = nullptr;
  MATRIX_CHECK(::io_uring_wait_cqe(&ring, &completion) == 0);
  const int result = completion->res;
  ::io_uring_cqe_seen(&ring, completion);
  return result;
}

class Ring {
 public:
  explicit Ring(unsigned flags = 0) : is_available_(::io_uring_queue_init(8, &ring_, flags) == 0) {}
  ~Ring() {
    if (is_available_) ::io_uring_queue_exit(&ring_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  bool is_available() const { return is_available_; }
  io_uring& get() { return ring_; }

 private:
  io_uring ring_{};
  bool is_available_;
};

// One request and its completion. False if the kernel does not support io_uring or these flags.
bool transfer_by_ring(const std::string& path, bool writes, unsigned flags = 0) {
  Ring ring(flags);
  if (!ring.is_available()) return false;
  const int fd = open_for(path, writes);
  io_uring_sqe* request = ::io_uring_get_sqe(&ring.get());
  if (writes) {
    ::io_uring_prep_write(request, fd, block, kBytes, 0);
  } else {
    ::io_uring_prep_read(request, fd, block, kBytes, 0);
  }
  MATRIX_CHECK(::io_uring_submit(&ring.get()) == 1);
  MATRIX_CHECK(next_result(ring.get()) == kWhole && ::close(fd) == 0);
  return true;
}

// Takes completions from the ring's memory without a call, so a profiler must find them in the ring itself.
bool read_without_calls(const std::string& path) {
  Ring ring;
  if (!ring.is_available()) return false;
  const int fd = open_for(path, false);
  for (unsigned i = 0; i < 4; ++i) {
    io_uring_sqe* request = ::io_uring_get_sqe(&ring.get());
    ::io_uring_prep_read(request, fd, block + i * 1024, 1024, i * 1024);
    ::io_uring_sqe_set_data64(request, 7);
  }
  MATRIX_CHECK(::io_uring_submit(&ring.get()) == 4);
  for (unsigned received = 0; received < 4;) {
    unsigned head = 0;
    unsigned completion_count = 0;
    io_uring_cqe* completion = nullptr;
    io_uring_for_each_cqe(&ring.get(), head, completion) {
      MATRIX_CHECK(completion->res == 1024);
      ++completion_count;
    }
    ::io_uring_cq_advance(&ring.get(), completion_count);
    received += completion_count;
  }
  return ::close(fd) == 0;
}

// Reads by the index of a registered file, after the file's descriptor was closed.
bool read_registered_file(const std::string& path) {
  Ring ring;
  if (!ring.is_available()) return false;
  const int fd = open_for(path, false);
  MATRIX_CHECK(::io_uring_register_files(&ring.get(), &fd, 1) == 0);
  MATRIX_CHECK(::close(fd) == 0);
  io_uring_sqe* request = ::io_uring_get_sqe(&ring.get());
  ::io_uring_prep_read(request, 0, block, kBytes, 0);
  request->flags |= IOSQE_FIXED_FILE;
  MATRIX_CHECK(::io_uring_submit_and_wait(&ring.get(), 1) == 1 && next_result(ring.get()) == kWhole);
  return true;
}

// Opens, reads and closes a file by one chain of requests with one completion. The process never has a
// descriptor of the file.
bool read_by_chain(const std::string& path) {
  Ring ring;
  if (!ring.is_available() || ::io_uring_register_files_sparse(&ring.get(), 4) != 0) return false;
  io_uring_sqe* request = ::io_uring_get_sqe(&ring.get());
  ::io_uring_prep_openat_direct(request, AT_FDCWD, path.c_str(), O_RDONLY, 0, 2);
  request->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
  request = ::io_uring_get_sqe(&ring.get());
  ::io_uring_prep_read(request, 2, block, kBytes, 0);
  request->flags |= IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK | IOSQE_CQE_SKIP_SUCCESS;
  request = ::io_uring_get_sqe(&ring.get());
  ::io_uring_prep_close_direct(request, 2);
  MATRIX_CHECK(::io_uring_submit_and_wait(&ring.get(), 1) == 3 && next_result(ring.get()) == 0);
  return true;
}

// Opens, reads at the descriptor's position, and closes, each as a request of its own.
bool open_by_ring(const std::string& path) {
  Ring ring;
  if (!ring.is_available()) return false;
  io_uring_sqe* request = ::io_uring_get_sqe(&ring.get());
  ::io_uring_prep_openat(request, AT_FDCWD, path.c_str(), O_RDONLY, 0);
  MATRIX_CHECK(::io_uring_submit(&ring.get()) == 1);
  const int fd = next_result(ring.get());
  MATRIX_CHECK(fd >= 0);
  request = ::io_uring_get_sqe(&ring.get());
  ::io_uring_prep_read(request, fd, block, kBytes, static_cast<__u64>(-1));
  MATRIX_CHECK(::io_uring_submit(&ring.get()) == 1 && next_result(ring.get()) == kWhole);
  request = ::io_uring_get_sqe(&ring.get());
  ::io_uring_prep_close(request, fd);
  MATRIX_CHECK(::io_uring_submit(&ring.get()) == 1 && next_result(ring.get()) == 0);
  return true;
}

// Requests with bad addresses, which the kernel must refuse; then a normal read.
bool read_after_bad_addresses(const std::string& path) {
  Ring ring;
  if (!ring.is_available()) return false;
  const auto check_refused = [&](io_uring_sqe* request, int descriptor, bool by_name) {
    void* const bad_address = reinterpret_cast<void*>(8);  // NOLINT(performance-no-int-to-ptr)
    if (by_name) {
      ::io_uring_prep_openat(request, AT_FDCWD, static_cast<const char*>(bad_address), O_RDONLY, 0);
    } else {
      ::io_uring_prep_readv(request, descriptor, static_cast<const iovec*>(bad_address), 2, 0);
    }
    MATRIX_CHECK(::io_uring_submit(&ring.get()) == 1 && next_result(ring.get()) == -EFAULT);
  };
  const int zero_fd = ::open("/dev/zero", O_RDONLY);
  check_refused(::io_uring_get_sqe(&ring.get()), zero_fd, true);
  check_refused(::io_uring_get_sqe(&ring.get()), zero_fd, false);
  return ::close(zero_fd) == 0 && transfer_by_ring(path, false);
}

// Maps and fills the ring without liburing. The tail is stored last, with release: the kernel takes all
// requests before it.
bool transfer_by_number(const std::string& path, bool writes) {
  io_uring_params parameters{};
  const int ring = int(::syscall(SYS_io_uring_setup, 4U, &parameters));
  if (ring < 0) return false;
  const size_t bytes = parameters.cq_off.cqes + parameters.cq_entries * sizeof(io_uring_cqe) + 4096;
  const auto map = [&](size_t length, off_t offset) {
    void* at = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, offset);
    MATRIX_CHECK(at != MAP_FAILED);
    return static_cast<char*>(at);
  };
  char* memory = map(bytes, IORING_OFF_SQ_RING);
  char* requests = map(parameters.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
  const auto number = [&](unsigned offset) { return reinterpret_cast<unsigned*>(memory + offset); };
  const int fd = open_for(path, writes);
  auto* request = reinterpret_cast<io_uring_sqe*>(requests);
  *request = io_uring_sqe{};
  if (writes) {
    ::io_uring_prep_write(request, fd, block, kBytes, 0);
  } else {
    ::io_uring_prep_read(request, fd, block, kBytes, 0);
  }
  *number(parameters.sq_off.array) = 0;
  std::atomic_ref(*number(parameters.sq_off.tail)).store(1, std::memory_order_release);
  MATRIX_CHECK(::syscall(SYS_io_uring_enter, ring, 1U, 1U, IORING_ENTER_GETEVENTS, nullptr, 0) == 1);
  MATRIX_CHECK(reinterpret_cast<io_uring_cqe*>(memory + parameters.cq_off.cqes)->res == kWhole);
  MATRIX_CHECK(::munmap(memory, bytes) == 0 &&
               ::munmap(requests, parameters.sq_entries * sizeof(io_uring_sqe)) == 0);
  return ::close(fd) == 0 && ::close(ring) == 0;
}

#define RING(expression) [](const std::string& path) { return expression; }
#else
#define RING(expression) [](const std::string&) { return false; }
#endif

constexpr Row kRows[] = {
    {"rings", "uring", RING(transfer_by_ring(path, false))},
    {"rings", "uring_write", RING(transfer_by_ring(path, true))},
    {"rings", "uring_sqpoll", RING(transfer_by_ring(path, false, IORING_SETUP_SQPOLL))},
    {"rings", "uring_without_calls", RING(read_without_calls(path))},
    {"rings", "uring_registered", RING(read_registered_file(path))},
    {"rings", "uring_chain", RING(read_by_chain(path))},
    {"rings", "uring_opened", RING(open_by_ring(path))},
    {"rings", "uring_bad_addresses", RING(read_after_bad_addresses(path))},
    {"rings", "syscall_io_uring", RING(transfer_by_number(path, false))},
    {"rings", "syscall_io_uring_write", RING(transfer_by_number(path, true))},
};

}  // namespace

std::span<const Row> ring_rows() {
  return kRows;
}

}  // namespace penstock::matrix
