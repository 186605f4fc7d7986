#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "profiling/interpose/matrix/matrix.hpp"

// Second names of functions, which libc's headers do not declare.
extern "C" {
int __open(const char* path, int flags, ...);
int __open64(const char* path, int flags, ...);
int __close(int fd);
ssize_t __read(int fd, void* out, size_t bytes);
ssize_t __write(int fd, const void* data, size_t bytes);
ssize_t __pread64(int fd, void* out, size_t bytes, off64_t offset);
ssize_t __pwrite64(int fd, const void* data, size_t bytes, off64_t offset);
off64_t __lseek(int fd, off64_t offset, int whence);
int __dup2(int from, int to);
int __fcntl(int fd, int command, ...);
}

namespace penstock::matrix {

namespace {

constexpr auto kWhole = ssize_t(kBytes);
constexpr int kNewFileFlags = O_WRONLY | O_CREAT | O_TRUNC;

// Opens the file with `open`, reads or writes the block with `move`, and closes it.
template <typename Open, typename Move>
bool transfer(Open open, Move move) {
  const int fd = open();
  MATRIX_CHECK(fd >= 0);
  MATRIX_CHECK(move(fd) == kWhole);
  MATRIX_CHECK(::close(fd) == 0);
  return true;
}
template <typename Move>
bool read_by(const std::string& path, Move move) {
  return transfer([&] { return ::open(path.c_str(), O_RDONLY); }, move);
}
template <typename Move>
bool write_by(const std::string& path, Move move) {
  return transfer([&] { return ::open(path.c_str(), kNewFileFlags, 0600); }, move);
}
ssize_t read_block(int fd) {
  return ::read(fd, block, kBytes);
}
ssize_t write_block(int fd) {
  return ::write(fd, block, kBytes);
}

std::array<iovec, 2> two_parts() {
  return {iovec{.iov_base = block, .iov_len = 1000},
          iovec{.iov_base = block + 1000, .iov_len = kBytes - 1000}};
}

// Splits a path into an open descriptor of its folder and the name in it.
struct Folder {
  explicit Folder(const std::string& path)
      : fd(::open(path.substr(0, path.rfind('/')).c_str(), O_RDONLY | O_DIRECTORY)),
        name(path.substr(path.rfind('/') + 1)) {
    MATRIX_CHECK(fd >= 0);
  }
  ~Folder() { ::close(fd); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const int fd;
  const std::string name;
};

// Makes a duplicate of the descriptor with `copy`, and reads or writes by it.
template <typename Copy, typename Move>
ssize_t transfer_by_duplicate(int fd, Copy copy, Move move) {
  const int duplicate = copy(fd);
  MATRIX_CHECK(duplicate >= 0 && duplicate != fd);
  const ssize_t bytes = move(duplicate);
  MATRIX_CHECK(::close(duplicate) == 0);
  return bytes;
}
constexpr int kHighDescriptor = 900;

#define READ(body) [](const std::string& path) { return read_by(path, [](int fd) -> ssize_t { body; }); }
#define WRITE(body) [](const std::string& path) { return write_by(path, [](int fd) -> ssize_t { body; }); }
#define OPEN(expression, move) \
  [](const std::string& path) { return transfer([&] { return expression; }, move); }
#define IN_FOLDER(expression, move)                    \
  [](const std::string& path) {                        \
    const Folder folder(path);                         \
    return transfer([&] { return expression; }, move); \
  }

bool transfer_direct(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_DIRECT, 0600);
  if (fd < 0 && errno == EINVAL) return false;  // this file system has no direct I/O
  MATRIX_CHECK(fd >= 0);
  MATRIX_CHECK((((flags & O_ACCMODE) == O_RDONLY) ? read_block(fd) : write_block(fd)) == kWhole);
  MATRIX_CHECK(::close(fd) == 0);
  return true;
}

// A handle of the file instead of its name. Returns false if the file system has none, or without the right.
bool read_by_handle(const std::string& path) {
  const Folder folder(path);
  alignas(file_handle) char memory[sizeof(file_handle) + MAX_HANDLE_SZ] = {};
  auto* const handle = reinterpret_cast<file_handle*>(memory);
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(AT_FDCWD, path.c_str(), handle, &mount, 0) != 0) return false;
  const int fd = ::open_by_handle_at(folder.fd, handle, O_RDONLY);
  if (fd < 0 && (errno == EPERM || errno == ESTALE)) return false;
  MATRIX_CHECK(fd >= 0 && read_block(fd) == kWhole && ::close(fd) == 0);
  return true;
}

// Makes room with one call, and fails with another one, whose result is the error itself.
ssize_t make_room_and_write(int fd) {
  MATRIX_CHECK(::posix_fallocate(fd, 0, kWhole) == 0);
  MATRIX_CHECK(::posix_fallocate64(fd, -1, kWhole) == EINVAL);
  return write_block(fd);
}

constexpr Row kRows[] = {
    {"posix", "read", READ(return read_block(fd))},
    {"posix", "read_write", WRITE(return write_block(fd))},
    {"posix", "open64", OPEN(::open64(path.c_str(), O_RDONLY), read_block)},
    {"posix", "open64_write", OPEN(::open64(path.c_str(), kNewFileFlags, 0600), write_block)},
    {"posix", "openat", OPEN(::openat(AT_FDCWD, path.c_str(), O_RDONLY), read_block)},
    {"posix", "openat_write", OPEN(::openat(AT_FDCWD, path.c_str(), kNewFileFlags, 0600), write_block)},
    {"posix", "openat_folder", IN_FOLDER(::openat(folder.fd, folder.name.c_str(), O_RDONLY), read_block)},
    {"posix", "openat_folder_write",
     IN_FOLDER(::openat(folder.fd, folder.name.c_str(), kNewFileFlags, 0600), write_block)},
    {"posix", "openat64", IN_FOLDER(::openat64(folder.fd, folder.name.c_str(), O_RDONLY), read_block)},
    {"posix", "openat64_write",
     IN_FOLDER(::openat64(folder.fd, folder.name.c_str(), kNewFileFlags, 0600), write_block)},
    {"posix", "creat_write", OPEN(::creat(path.c_str(), 0600), write_block)},
    {"posix", "creat64_write", OPEN(::creat64(path.c_str(), 0600), write_block)},
    {"posix", "pread", READ(return ::pread(fd, block, kBytes, 0))},
    {"posix", "pread_write", WRITE(return ::pwrite(fd, block, kBytes, 0))},
    {"posix", "pread64", READ(return ::pread64(fd, block, kBytes, 0))},
    {"posix", "pread64_write", WRITE(return ::pwrite64(fd, block, kBytes, 0))},
    {"posix", "readv", READ(const auto parts = two_parts(); return ::readv(fd, parts.data(), 2))},
    {"posix", "readv_write", WRITE(const auto parts = two_parts(); return ::writev(fd, parts.data(), 2))},
    {"posix", "preadv", READ(const auto parts = two_parts(); return ::preadv(fd, parts.data(), 2, 0))},
    {"posix", "preadv_write",
     WRITE(const auto parts = two_parts(); return ::pwritev(fd, parts.data(), 2, 0))},
    {"posix", "preadv64", READ(const auto parts = two_parts(); return ::preadv64(fd, parts.data(), 2, 0))},
    {"posix", "preadv64_write",
     WRITE(const auto parts = two_parts(); return ::pwritev64(fd, parts.data(), 2, 0))},
    {"posix", "preadv2", READ(const auto parts = two_parts(); return ::preadv2(fd, parts.data(), 2, 0, 0))},
    {"posix", "preadv2_write",
     WRITE(const auto parts = two_parts(); return ::pwritev2(fd, parts.data(), 2, 0, 0))},
    {"posix", "preadv2_position",
     READ(const auto parts = two_parts(); return ::preadv2(fd, parts.data(), 2, -1, 0))},
    {"posix", "preadv2_position_write",
     WRITE(const auto parts = two_parts(); return ::pwritev2(fd, parts.data(), 2, -1, 0))},
    {"posix", "dup", READ(return transfer_by_duplicate(fd, ::dup, read_block))},
    {"posix", "dup_write", WRITE(return transfer_by_duplicate(fd, ::dup, write_block))},
    {"posix", "dup2",
     READ(return transfer_by_duplicate(
         fd, [](int from) { return ::dup2(from, kHighDescriptor); }, read_block))},
    {"posix", "dup2_write",
     WRITE(return transfer_by_duplicate(
         fd, [](int from) { return ::dup2(from, kHighDescriptor); }, write_block))},
    {"posix", "dup3",
     READ(return transfer_by_duplicate(
         fd, [](int from) { return ::dup3(from, kHighDescriptor, O_CLOEXEC); }, read_block))},
    {"posix", "dup3_write",
     WRITE(return transfer_by_duplicate(
         fd, [](int from) { return ::dup3(from, kHighDescriptor, O_CLOEXEC); }, write_block))},
    {"posix", "fcntl_dup",
     READ(return transfer_by_duplicate(
         fd, [](int from) { return ::fcntl(from, F_DUPFD, kHighDescriptor); }, read_block))},
    {"posix", "fcntl_dup_write",
     WRITE(return transfer_by_duplicate(
         fd, [](int from) { return ::fcntl(from, F_DUPFD_CLOEXEC, kHighDescriptor); }, write_block))},
    {"posix", "second_names", [](const std::string& path) {
       const int fd = __open(path.c_str(), O_RDONLY);
       MATRIX_CHECK(__read(fd, block, 96) == 96 && __pread64(fd, block + 96, 1000, 96) == 1000);
       MATRIX_CHECK(__lseek(fd, 1096, SEEK_SET) == 1096 && __dup2(fd, kHighDescriptor) == kHighDescriptor);
       MATRIX_CHECK(__read(kHighDescriptor, block + 1096, kBytes - 1096) == kWhole - 1096);
       return __close(kHighDescriptor) == 0 && __close(fd) == 0;
     }},
    {"posix", "second_names_write", [](const std::string& path) {
       const int fd = __open64(path.c_str(), kNewFileFlags, 0600);
       MATRIX_CHECK(__write(fd, block, 96) == 96 && __pwrite64(fd, block + 96, 1000, 96) == 1000);
       const int duplicate = __fcntl(fd, F_DUPFD_CLOEXEC, kHighDescriptor);
       MATRIX_CHECK(__lseek(duplicate, 1096, SEEK_SET) == 1096);
       MATRIX_CHECK(__write(duplicate, block + 1096, kBytes - 1096) == kWhole - 1096);
       return __close(duplicate) == 0 && __close(fd) == 0;
     }},
    {"posix", "handle", read_by_handle},
    {"posix", "posix_fallocate_write", WRITE(return make_room_and_write(fd))},
    {"posix", "readahead", READ(MATRIX_CHECK(::readahead(fd, 0, kBytes) == 0); return read_block(fd))},
    {"posix", "direct", [](const std::string& path) { return transfer_direct(path, O_RDONLY); }},
    {"posix", "direct_write", [](const std::string& path) { return transfer_direct(path, kNewFileFlags); }},
};

}  // namespace

std::span<const Row> posix_rows() {
  return kRows;
}

}  // namespace penstock::matrix
