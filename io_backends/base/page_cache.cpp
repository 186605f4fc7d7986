#include "io_backends/base/page_cache.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "io_backends/base/buffer.hpp"
#include "io_backends/base/fd.hpp"
#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/threads.hpp"

namespace penstock {
namespace {

// cachestat(2), Linux 6.5; by hand because older headers lack it.
constexpr long kCachestat = 451;
struct CachestatRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // 0: to the end
};
struct Cachestat {
  std::uint64_t cached = 0;
  std::uint64_t dirty = 0;
  std::uint64_t writeback = 0;
  std::uint64_t evicted = 0;
  std::uint64_t recently_evicted = 0;
};

constexpr std::size_t kWarmBytes = 256U << 10U;

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

Result<Fd> open_file(const char* file, std::string_view operation) {
  Fd fd(retry_eintr([&] { return ::open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC); }));
  if (!fd) return errno_error(errno, operation, file);
  return fd;
}

// mincore tells the truth only to those who own the file or may write it; to others it says "all resident".
bool mincore_is_honest(int fd, const struct stat& status) {
  if (::geteuid() == 0 || ::geteuid() == status.st_uid) return true;
  return ::faccessat(fd, "", W_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

Residency by_mincore(int fd, const struct stat& status) {
  Residency found;
  found.total_bytes = static_cast<std::uint64_t>(status.st_size);
  if (!mincore_is_honest(fd, status)) return found;
  constexpr std::uint64_t kPagesAtOnce = 65536;
  const std::uint64_t page = page_bytes();
  std::vector<unsigned char> pages;
  std::uint64_t resident = 0;
  for (std::uint64_t offset = 0; offset < found.total_bytes; offset += kPagesAtOnce * page) {
    const std::uint64_t length = std::min(kPagesAtOnce * page, found.total_bytes - offset);
    void* window = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (window == MAP_FAILED) return found;
    pages.assign((length + page - 1) / page, 0);
    const int result = ::mincore(window, length, pages.data());
    ::munmap(window, length);
    if (result != 0) return found;
    resident += static_cast<std::uint64_t>(
        std::count_if(pages.begin(), pages.end(), [](unsigned char bits) { return (bits & 1U) != 0; }));
  }
  found.resident_bytes = std::min(resident * page, found.total_bytes);
  found.verified = true;
  return found;
}

Result<Residency> residency_of_file(const char* file) {
  PENSTOCK_ASSIGN(const Fd fd, open_file(file, "cannot ask for the cached pages of"));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "cannot look at", file);
  CachestatRange whole;
  Cachestat cache;
  if (::syscall(kCachestat, fd.get(), &whole, &cache, 0U) != 0) return by_mincore(fd.get(), status);
  const auto total = static_cast<std::uint64_t>(status.st_size);
  return Residency{std::min(cache.cached * page_bytes(), total), total, true};
}

Result<void> evict_file(const char* file) {
  PENSTOCK_ASSIGN(const Fd fd, open_file(file, "cannot evict"));
  // Dirty pages cannot be forgotten. Writing them back needs no promise that they survive a power cut, so
  // this spares the device's flush that fdatasync brings.
  constexpr unsigned kWriteBack =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (::sync_file_range(fd.get(), 0, 0, kWriteBack) != 0 && (errno == EIO || errno == ENOSPC))
    return errno_error(errno, "cannot write back", file);
  if (const int failed = ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED); failed != 0)
    return errno_error(failed, "cannot evict", file);
  return success();
}

Result<void> warm_file(const char* file, Buffer& buffer) {
  PENSTOCK_ASSIGN(const Fd fd, open_file(file, "cannot read"));
  for (;;) {
    const ssize_t got = retry_eintr([&] { return ::read(fd.get(), buffer.data(), buffer.capacity()); });
    if (got < 0) return errno_error(errno, "cannot read", file);
    if (got == 0) return success();
  }
}

// Calls work(path, worker) for every file of the set from `threads` threads.
template <class Work>
Result<void> for_all(const FileSet& files, unsigned threads, Work work) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  const auto stop = [&failed] { failed.store(true, std::memory_order_relaxed); };
  const auto loop = [&](unsigned worker) -> Result<void> {
    std::string path;
    for (;;) {
      const std::uint64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= files.count || failed.load(std::memory_order_relaxed)) return success();
      files.path(i, path);
      Result<void> done = interrupted() ? check_interrupt() : work(path.c_str(), worker);
      if (done) continue;
      stop();
      return done;
    }
  };
  return on_threads(threads, loop, IfFewer::go_on, stop);
}

}  // namespace

Result<Residency> residency(const std::filesystem::path& file) {
  return residency_of_file(file.c_str());
}

Result<void> evict(const std::filesystem::path& file) {
  return evict_file(file.c_str());
}

Result<void> warm(const std::filesystem::path& file) {
  Buffer buffer(kWarmBytes);
  return warm_file(file.c_str(), buffer);
}

Result<void> drop_caches() {
  constexpr const char* kDoor = "/proc/sys/vm/drop_caches";
  const Fd fd(::open(kDoor, O_WRONLY | O_CLOEXEC));
  if (!fd) return errno_error(errno, "cannot drop the machine's caches through", kDoor);
  ::sync();  // dirty pages stay unless they are written back first
  if (::write(fd.get(), "3", 1) != 1)
    return errno_error(errno, "cannot drop the machine's caches through", kDoor);
  return success();
}

Result<SetResidency> residency_of(const FileSet& files, unsigned threads) {
  struct alignas(64) Part {
    SetResidency found;
  };
  threads = std::max(threads, 1U);
  std::vector<Part> parts(threads);
  PENSTOCK_TRY(for_all(files, threads, [&](const char* file, unsigned worker) -> Result<void> {
    PENSTOCK_ASSIGN(const Residency one, residency_of_file(file));
    SetResidency& mine = parts[worker].found;
    ++mine.files;
    mine.sum.total_bytes += one.total_bytes;
    if (one.verified) {
      mine.sum.resident_bytes += one.resident_bytes;
    } else {
      ++mine.unverified_files;
    }
    return success();
  }));
  SetResidency all;
  for (const Part& part : parts) {
    all.files += part.found.files;
    all.unverified_files += part.found.unverified_files;
    all.sum.resident_bytes += part.found.sum.resident_bytes;
    all.sum.total_bytes += part.found.sum.total_bytes;
  }
  all.sum.verified = all.unverified_files == 0;
  return all;
}

Result<void> evict_all(const FileSet& files, unsigned threads) {
  return for_all(files, std::max(threads, 1U), [](const char* file, unsigned) { return evict_file(file); });
}

Result<void> warm_all(const FileSet& files, unsigned threads) {
  threads = std::max(threads, 1U);
  std::vector<Buffer> buffers;
  for (unsigned i = 0; i < threads; ++i) buffers.emplace_back(kWarmBytes);
  return for_all(files, threads,
                 [&](const char* file, unsigned worker) { return warm_file(file, buffers[worker]); });
}

}  // namespace penstock
