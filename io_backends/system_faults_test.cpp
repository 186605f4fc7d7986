#include "io_backends/system_faults_test.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <new>

#include "io_backends/core/system/fd.hpp"

namespace penstock {
namespace {

thread_local InjectedFaults* current_faults = nullptr;
thread_local uint64_t allocation_count = 0;

bool injects_failure(Call call) {
  return current_faults != nullptr && current_faults->must_fail(call);
}
size_t shortened(Call call, size_t bytes) {
  return current_faults == nullptr ? bytes : current_faults->shortened(call, bytes);
}

}  // namespace

InjectedFaults::InjectedFaults() {
  current_faults = this;
}

InjectedFaults::~InjectedFaults() {
  current_faults = nullptr;
}

void InjectedFaults::fail(Call call, int sys_errno, uint64_t first, uint64_t step) {
  at(call).sys_errno = sys_errno;
  at(call).first = first;
  at(call).step = step;
}

bool InjectedFaults::must_fail(Call call) {
  Plan& plan = at(call);
  ++plan.calls;
  if (plan.sys_errno == 0 || plan.calls < plan.first || (plan.calls - plan.first) % plan.step != 0)
    return false;
  errno = plan.sys_errno;
  return true;
}

size_t InjectedFaults::shortened(Call call, size_t bytes) {
  return std::min(bytes, at(call).max_bytes);
}

bool has_nameless_files(const std::filesystem::path& folder) {
  const Fd file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  return static_cast<bool>(file);
}

uint64_t allocations() {
  return allocation_count;
}

}  // namespace penstock

using penstock::Call;
using penstock::injects_failure;
using penstock::shortened;

// NOLINTBEGIN(cppcoreguidelines-*,cert-*,misc-*): these functions replace those of the C library.
extern "C" {

// io_uring_submit() calls io_uring_submit_and_wait(), which does the same. That function is null if this test
// is built without liburing.
struct io_uring;
__attribute__((weak)) int io_uring_submit_and_wait(struct io_uring* ring, unsigned completions);
__attribute__((visibility("default"))) int io_uring_submit(struct io_uring* ring) {
  if (injects_failure(Call::ring_submit)) return -errno;
  return io_uring_submit_and_wait(ring, 0);
}

__attribute__((visibility("default"))) ssize_t read(int fd, void* out, size_t bytes) {
  if (injects_failure(Call::read)) return -1;
  return syscall(SYS_read, fd, out, shortened(Call::read, bytes));
}

__attribute__((visibility("default"))) ssize_t pread(int fd, void* out, size_t bytes, off_t offset) {
  if (injects_failure(Call::read)) return -1;
  return syscall(SYS_pread64, fd, out, shortened(Call::read, bytes), offset);
}

// A vector read that a fault shortens reads only as much of the first piece as the fault allows.
__attribute__((visibility("default"))) ssize_t preadv(int fd, const struct iovec* parts, int count,
                                                      off_t offset) {
  if (injects_failure(Call::read)) return -1;
  if (shortened(Call::read, SIZE_MAX) == SIZE_MAX) return syscall(SYS_preadv, fd, parts, count, offset, 0L);
  return syscall(SYS_pread64, fd, parts[0].iov_base, shortened(Call::read, parts[0].iov_len), offset);
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  if (injects_failure(Call::write)) return -1;
  return syscall(SYS_pwrite64, fd, data, shortened(Call::write, bytes), offset);
}

// A vector write that a fault shortens writes only as much of the first non-empty piece as the fault allows.
__attribute__((visibility("default"))) ssize_t pwritev(int fd, const struct iovec* parts, int count,
                                                       off_t offset) {
  if (injects_failure(Call::write)) return -1;
  if (shortened(Call::write, SIZE_MAX) == SIZE_MAX) return syscall(SYS_pwritev, fd, parts, count, offset, 0L);
  int i = 0;
  while (i + 1 < count && parts[i].iov_len == 0) ++i;
  return syscall(SYS_pwrite64, fd, parts[i].iov_base, shortened(Call::write, parts[i].iov_len), offset);
}

__attribute__((visibility("default"))) int openat(int folder, const char* name, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  if (injects_failure((flags & O_TMPFILE) == O_TMPFILE ? Call::open_nameless : Call::open)) return -1;
  return int(syscall(SYS_openat, folder, name, flags, mode));
}

__attribute__((visibility("default"))) int linkat(int from_folder, const char* from, int to_folder,
                                                  const char* to, int flags) noexcept {
  if (injects_failure(Call::linkat)) return -1;
  return int(syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
}

__attribute__((visibility("default"))) int renameat(int from_folder, const char* from, int to_folder,
                                                    const char* to) noexcept {
  if (injects_failure(Call::renameat)) return -1;
#ifdef SYS_renameat
  return int(syscall(SYS_renameat, from_folder, from, to_folder, to));
#else
  return int(syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
#endif
}

__attribute__((visibility("default"))) int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  if (command == F_OFD_SETLK && injects_failure(Call::lock)) return -1;
  return int(syscall(SYS_fcntl, fd, command, argument));
}

__attribute__((visibility("default"))) int renameat2(int from_folder, const char* from, int to_folder,
                                                     const char* to, unsigned flags) noexcept {
  if (injects_failure(Call::renameat2)) return -1;
  return int(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

__attribute__((visibility("default"))) int fdatasync(int fd) {
  if (injects_failure(Call::fdatasync)) return -1;
  return int(syscall(SYS_fdatasync, fd));
}

__attribute__((visibility("default"))) int fsync(int fd) {
  if (injects_failure(Call::fsync)) return -1;
  return int(syscall(SYS_fsync, fd));
}

__attribute__((visibility("default"))) int fallocate(int fd, int mode, off_t offset, off_t length) {
  if (injects_failure(Call::fallocate)) return -1;
  return int(syscall(SYS_fallocate, fd, mode, offset, length));
}

__attribute__((visibility("default"))) int posix_fadvise(int fd, off_t offset, off_t length,
                                                         int advice) noexcept {
  injects_failure(Call::fadvise);
  return syscall(SYS_fadvise64, fd, offset, length, advice) == 0 ? 0 : errno;
}

__attribute__((visibility("default"))) int close(int fd) {
  const bool failed = injects_failure(Call::close);
  const int sys_errno = errno;
  const auto result = int(syscall(SYS_close, fd));
  if (!failed) return result;
  errno = sys_errno;
  return -1;
}

}  // extern "C"

// Counts allocations and forwards them. Over-aligned types use the library's own operator.
void* operator new(size_t bytes) {
  ++penstock::allocation_count;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t /*bytes*/) noexcept {
  std::free(memory);
}
// NOLINTEND(cppcoreguidelines-*,cert-*,misc-*)
