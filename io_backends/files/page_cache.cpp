// Threads: any thread may call the functions. They share no data that changes.
// Lock: none.
// Memory: paths and errors allocate. warm() has a buffer of 256 KiB. by_mincore() maps up to 65,536 pages at
// a time.
// Ctrl-C: this file does not check for a signal; an open or a read is repeated after EINTR. The caller checks
// between two files.
// Crash: no file changes. evict() writes dirty pages back, but does not make them durable.
#include "io_backends/files/page_cache.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {
namespace {

// cachestat(2) of Linux 6.5. Its number and structure are defined here, because older headers lack them.
constexpr long kCachestat = 451;
constexpr uint64_t kWholeFile[] = {0, 0};  // offset 0 and length 0: the whole file
struct Cachestat {
  uint64_t cached = 0;
  uint64_t dirty = 0;
  uint64_t writeback = 0;
  uint64_t evicted = 0;
  uint64_t recently_evicted = 0;
};

constexpr size_t kWarmReadBytes = 256U << 10U;

uint64_t page_bytes() {
  static const auto bytes = uint64_t(::sysconf(_SC_PAGESIZE));
  return bytes;
}

Result<Fd> open_file(const std::filesystem::path& file, std::string_view operation) {
  Fd fd(retry_eintr([&] { return ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); }));
  if (!fd) return errno_error(errno, operation, file.native());
  return fd;
}

// Whether mincore() reports the real state of the pages to this user. It does that only for users who own the
// file or may write it. For others it always reports "all resident".
bool mincore_is_exact(int fd, const struct stat& status) {
  if (::geteuid() == 0 || ::geteuid() == status.st_uid) return true;
  return ::faccessat(fd, "", W_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

Residency by_mincore(int fd, const struct stat& status) {
  Residency found;
  found.total_bytes = uint64_t(status.st_size);
  if (!mincore_is_exact(fd, status)) return found;
  constexpr uint64_t kPagesAtOnce = 65536;
  const uint64_t page_size = page_bytes();
  std::vector<unsigned char> pages;
  uint64_t resident = 0;
  for (uint64_t offset = 0; offset < found.total_bytes; offset += kPagesAtOnce * page_size) {
    const uint64_t length = std::min(kPagesAtOnce * page_size, found.total_bytes - offset);
    void* window = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, off_t(offset));
    if (window == MAP_FAILED) return found;
    pages.assign((length + page_size - 1) / page_size, 0);
    const int result = ::mincore(window, length, pages.data());
    ::munmap(window, length);
    if (result != 0) return found;
    resident += uint64_t(
        std::count_if(pages.begin(), pages.end(), [](unsigned char bits) { return (bits & 1U) != 0; }));
  }
  found.resident_bytes = std::min(resident * page_size, found.total_bytes);
  found.verified = true;
  return found;
}

}  // namespace

Result<Residency> residency(const std::filesystem::path& file) {
  PENSTOCK_ASSIGN(const Fd fd, open_file(file, "cannot query the cached pages of"));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "cannot inspect", file.native());
  Cachestat cache;
  if (::syscall(kCachestat, fd.get(), kWholeFile, &cache, 0U) != 0) return by_mincore(fd.get(), status);
  const auto total = uint64_t(status.st_size);
  return Residency{std::min(cache.cached * page_bytes(), total), total, true};
}

Result<void> evict(const std::filesystem::path& file) {
  PENSTOCK_ASSIGN(const Fd fd, open_file(file, "cannot evict"));
  // Dirty pages cannot be evicted, so they are written back first. They need not survive a power cut, so
  // sync_file_range() is used: unlike fdatasync() it does not flush the device's cache.
  constexpr unsigned kWriteBack =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  const int write_errno = ::sync_file_range(fd.get(), 0, 0, kWriteBack) == 0 ? 0 : errno;
  // This also evicts pages that could not be written: after a failure the kernel treats them as if they had
  // been written.
  if (const int failed = ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED); failed != 0)
    return errno_error(failed, "cannot evict", file.native());
  if (write_errno == EIO || write_errno == ENOSPC)
    return errno_error(write_errno, "cannot write back", file.native());
  return success();
}

Result<void> warm(const std::filesystem::path& file) {
  PENSTOCK_ASSIGN(const Fd fd, open_file(file, "cannot read"));
  Buffer buffer(kWarmReadBytes);
  for (;;) {
    const ssize_t got = retry_eintr([&] { return ::read(fd.get(), buffer.data(), buffer.capacity()); });
    if (got < 0) return errno_error(errno, "cannot read", file.native());
    if (got == 0) return success();
  }
}

Result<void> drop_caches() {
  constexpr const char* kDropCachesPath = "/proc/sys/vm/drop_caches";
  const Fd fd(::open(kDropCachesPath, O_WRONLY | O_CLOEXEC));
  if (!fd) return errno_error(errno, "cannot drop the machine's caches through", kDropCachesPath);
  ::sync();  // drop_caches drops only clean pages, so dirty pages are written back first
  if (::write(fd.get(), "3", 1) != 1)
    return errno_error(errno, "cannot drop the machine's caches through", kDropCachesPath);
  return success();
}

}  // namespace penstock
