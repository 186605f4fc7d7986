// Rows for data that the kernel moves itself, for mapped files, and for system calls by their numbers.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "profiling/interpose/matrix/matrix.hpp"

namespace penstock::matrix {

namespace {

constexpr auto kWhole = ssize_t(kBytes);
constexpr int kNewFileFlags = O_RDWR | O_CREAT | O_TRUNC;

bool copy_by_mapping(const std::string& path, bool writes) {
  const int fd = ::open(path.c_str(), writes ? kNewFileFlags : O_RDONLY, 0600);
  MATRIX_CHECK(!writes || ::ftruncate(fd, kWhole) == 0);
  void* at = ::mmap(nullptr, kBytes, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  MATRIX_CHECK(at != MAP_FAILED);
  std::memcpy(writes ? at : block, writes ? block : at, kBytes);
  MATRIX_CHECK(::munmap(at, kBytes) == 0 && ::close(fd) == 0);
  return true;
}

// Copies the row's file with `move` to another file, whose name ends in ".to".
template <typename Move>
bool copy_file(const std::string& path, Move move) {
  const int from = ::open(path.c_str(), O_RDONLY);
  const int to = ::open((path + ".to").c_str(), kNewFileFlags, 0600);
  MATRIX_CHECK(from >= 0 && to >= 0 && move(from, to) == kWhole);
  MATRIX_CHECK(::close(from) == 0 && ::close(to) == 0);
  return true;
}

ssize_t splice_by_pipe(int from, int to) {
  int ends[2];
  MATRIX_CHECK(::pipe(ends) == 0);
  MATRIX_CHECK(::splice(from, nullptr, ends[1], nullptr, kBytes, 0) == kWhole);
  const ssize_t bytes = ::splice(ends[0], nullptr, to, nullptr, kBytes, 0);
  MATRIX_CHECK(::close(ends[0]) == 0 && ::close(ends[1]) == 0);
  return bytes;
}

template <typename Move>
bool transfer_by_number(const std::string& path, bool writes, Move move) {
  const long fd = ::syscall(SYS_openat, AT_FDCWD, path.c_str(), writes ? kNewFileFlags : O_RDONLY, 0600);
  MATRIX_CHECK(fd >= 0 && move(int(fd)) == kWhole && ::syscall(SYS_close, fd) == 0);
  return true;
}

// A read by a machine instruction in the program, so that no library function is called.
bool inline_read(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
#if defined(__x86_64__)
  long result = 0;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(long{SYS_read}), "D"(long{fd}), "S"(block), "d"(kBytes)
                   : "rcx", "r11", "memory");
#else
  register long x8 __asm__("x8") = SYS_read;
  register long x0 __asm__("x0") = fd;
  register char* x1 __asm__("x1") = block;
  register long x2 __asm__("x2") = kWhole;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  const long result = x0;
#endif
  MATRIX_CHECK(result == kWhole && ::close(fd) == 0);
  return true;
}

iovec whole_block() {
  return {.iov_base = block, .iov_len = kBytes};
}

constexpr Row kRows[] = {
    {"kernel", "mmap", [](const std::string& path) { return copy_by_mapping(path, false); }},
    {"kernel", "mmap_write", [](const std::string& path) { return copy_by_mapping(path, true); }},
    {"kernel", "sendfile",
     [](const std::string& path) {
       return copy_file(path, [](int from, int to) { return ::sendfile(to, from, nullptr, kBytes); });
     }},
    {"kernel", "copy_file_range",
     [](const std::string& path) {
       return copy_file(
           path, [](int from, int to) { return ::copy_file_range(from, nullptr, to, nullptr, kBytes, 0); });
     }},
    {"kernel", "splice", [](const std::string& path) { return copy_file(path, splice_by_pipe); }},
    {"number", "syscall_read",
     [](const std::string& path) {
       return transfer_by_number(path, false, [](int fd) { return ::syscall(SYS_read, fd, block, kBytes); });
     }},
    {"number", "syscall_read_write",
     [](const std::string& path) {
       return transfer_by_number(path, true, [](int fd) { return ::syscall(SYS_write, fd, block, kBytes); });
     }},
    {"number", "syscall_pread64",
     [](const std::string& path) {
       return transfer_by_number(path, false,
                                 [](int fd) { return ::syscall(SYS_pread64, fd, block, kBytes, 0L); });
     }},
    {"number", "syscall_pread64_write",
     [](const std::string& path) {
       return transfer_by_number(path, true,
                                 [](int fd) { return ::syscall(SYS_pwrite64, fd, block, kBytes, 0L); });
     }},
    {"number", "syscall_preadv2",
     [](const std::string& path) {
       return transfer_by_number(path, false, [](int fd) {
         const iovec part = whole_block();
         return ::syscall(SYS_preadv2, fd, &part, 1L, 0L, 0L, 0L);
       });
     }},
    {"number", "syscall_preadv2_write",
     [](const std::string& path) {
       return transfer_by_number(path, true, [](int fd) {
         const iovec part = whole_block();
         return ::syscall(SYS_pwritev2, fd, &part, 1L, 0L, 0L, 0L);
       });
     }},
    {"number", "syscall_dup",
     [](const std::string& path) {
       return transfer_by_number(path, false, [](int fd) {
         const long duplicate = ::syscall(SYS_dup, fd);
         const long bytes = ::syscall(SYS_read, duplicate, block, kBytes);
         MATRIX_CHECK(::syscall(SYS_close, duplicate) == 0);
         return bytes;
       });
     }},
    {"number", "syscall_statx",
     [](const std::string& path) {
       struct statx status {};
       return ::syscall(SYS_statx, AT_FDCWD, path.c_str(), 0, STATX_SIZE, &status) == 0;
     }},
    {"number", "syscall_symlinkat",
     [](const std::string& path) {
       return ::syscall(SYS_symlinkat, path.c_str(), AT_FDCWD, (path + ".link").c_str()) == 0;
     }},
    {"number", "syscall_readahead",
     [](const std::string& path) {
       return transfer_by_number(path, false, [](int fd) {
         MATRIX_CHECK(::syscall(SYS_readahead, fd, 0L, kBytes) == 0);
         return ::syscall(SYS_read, fd, block, kBytes);
       });
     }},
    {"number", "syscall_sendfile",
     [](const std::string& path) {
       return copy_file(path,
                        [](int from, int to) { return ::syscall(SYS_sendfile, to, from, nullptr, kBytes); });
     }},
    {"inline", "inline_read", inline_read},
};

}  // namespace

std::span<const Row> kernel_rows() {
  return kRows;
}

}  // namespace penstock::matrix
