// Rows of the matrix (matrix.hpp) for the checked functions of libc, whose names end in _chk, and for
// __open64_2. This file is built with _FORTIFY_SOURCE, which makes libc's headers use them.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cwchar>

#include "profiling/interpose/matrix/matrix.hpp"

namespace penstock::matrix {

namespace {

// volatile hides the size from the compiler, so that the check is made at run time.
volatile size_t whole_bytes = kBytes;
volatile int read_only_flags = O_RDONLY;
char buffer[kBytes];

template <typename Move>
bool transfer_by_descriptor(const std::string& path, int flags, Move move) {
  const int fd = ::open(path.c_str(), flags, 0600);
  MATRIX_CHECK(fd >= 0 && move(fd) == ssize_t(kBytes) && ::close(fd) == 0);
  return true;
}

template <typename Move>
bool transfer_by_stream(const std::string& path, const char* mode, Move move) {
  std::FILE* file = std::fopen(path.c_str(), mode);
  MATRIX_CHECK(file != nullptr);
  move(file);
  MATRIX_CHECK(std::fclose(file) == 0);
  return true;
}

constexpr Row kRows[] = {
    {"fortified", "read_chk",
     [](const std::string& path) {
       return transfer_by_descriptor(path, O_RDONLY, [](int fd) { return ::read(fd, buffer, whole_bytes); });
     }},
    {"fortified", "pread_chk",
     [](const std::string& path) {
       return transfer_by_descriptor(path, O_RDONLY,
                                     [](int fd) { return ::pread(fd, buffer, whole_bytes, 0); });
     }},
    {"fortified", "pread64_chk",
     [](const std::string& path) {
       return transfer_by_descriptor(path, O_RDONLY,
                                     [](int fd) { return ::pread64(fd, buffer, whole_bytes, 0); });
     }},
    {"fortified", "open64_2",
     [](const std::string& path) {
       const int flags = read_only_flags;
       const int fd = ::open64(path.c_str(), flags);
       MATRIX_CHECK(fd >= 0 && ::read(fd, block, kBytes) == ssize_t(kBytes));
       return ::close(fd) == 0;
     }},
    {"fortified", "openat_2",
     [](const std::string& path) {
       const int flags = read_only_flags;
       const int fd = ::openat(AT_FDCWD, path.c_str(), flags);
       MATRIX_CHECK(fd >= 0 && ::read(fd, block, kBytes) == ssize_t(kBytes));
       return ::close(fd) == 0;
     }},
    {"fortified", "fread_chk",
     [](const std::string& path) {
       return transfer_by_stream(path, "r", [](std::FILE* file) {
         MATRIX_CHECK(std::fread(buffer, 1, whole_bytes, file) == kBytes);
       });
     }},
    {"fortified", "fread_unlocked_chk",
     [](const std::string& path) {
       return transfer_by_stream(path, "r", [](std::FILE* file) {
         MATRIX_CHECK(::fread_unlocked(buffer, 1, whole_bytes, file) == kBytes);
       });
     }},
    {"fortified", "fgets_chk",
     [](const std::string& path) {
       return transfer_by_stream(path, "r", [](std::FILE* file) {
         while (std::fgets(buffer, int(whole_bytes), file) != nullptr) {
         }
       });
     }},
    {"fortified", "fprintf_chk_write",
     [](const std::string& path) {
       return transfer_by_stream(path, "w", [](std::FILE* file) {
         MATRIX_CHECK(std::fprintf(file, "%.*s", int(kBytes), block) == int(kBytes));
       });
     }},
    {"fortified", "wprintf_chk_write",
     [](const std::string& path) {
       MATRIX_CHECK(std::freopen(path.c_str(), "w", stdout) == stdout);
       MATRIX_CHECK(std::wprintf(L"%.*s", int(kBytes), block) == int(kBytes));
       return std::freopen("/dev/null", "w", stdout) == stdout;
     }},
    {"fortified", "readlink_chk",
     [](const std::string& path) {
       const std::string link = path + ".link";
       MATRIX_CHECK(::symlinkat(path.c_str(), AT_FDCWD, link.c_str()) == 0);
       MATRIX_CHECK(::readlink(link.c_str(), buffer, whole_bytes) == ssize_t(path.size()));
       return ::readlinkat(AT_FDCWD, link.c_str(), buffer, whole_bytes) == ssize_t(path.size());
     }},
    {"fortified", "dprintf_chk_write",
     [](const std::string& path) {
       return transfer_by_descriptor(path, O_WRONLY | O_CREAT | O_TRUNC, [](int fd) -> ssize_t {
         return ::dprintf(fd, "%.*s", int(kBytes), block);
       });
     }},
};

}  // namespace

std::span<const Row> fortified_rows() {
  return kRows;
}

}  // namespace penstock::matrix
