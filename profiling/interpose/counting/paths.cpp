// Builds the absolute names of files, without a lock and without heap memory, in the program's wrapped calls.
//
// Threads: all functions run in the thread that makes the wrapped call, within an Update (counting.hpp) of
// its log. Only note_working_directory(), inspect(), is_readable() and is_readable_path() may be called by
// any code.
// Locks: none. Only `directories` and `newest_directory` are written by several threads.
// Memory: static buffers and those of the caller. The only functions of libc called here are those that POSIX
// allows in handlers, and those that only read memory (strchrnul, memmem). snprintf() is not called, because
// it belongs to stdio and uses the locale.
// Signals: a handler that interrupted an update of its own thread builds no names, because the update may be
// using log.name. System calls are made directly (system_call()), so they are not counted.
#include "profiling/interpose/counting/paths.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include <atomic>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "profiling/interpose/counting/descriptors.hpp"
#include "profiling/interpose/writer/session.hpp"
#include "profiling/interpose/writer/sixteens.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

namespace {

// The name of the working directory is in the newest of eight buffers; each chdir() fills the next buffer. So
// a thread can copy the name while another thread calls chdir(): the copy is right unless eight chdir() calls
// are made meanwhile. A limit: two threads that call chdir() at the same instant may write to the same
// buffer. Then the name may be wrong until the program's next chdir().
constexpr size_t kDirectoryBuffers = 8;
constexpr size_t kDirectoryBytes = 4096;
char directories[kDirectoryBuffers][kDirectoryBytes];
std::atomic<unsigned> newest_directory{0};

// Computes name.file, the key of the name. The key is never 0, because 0 means "no file".
void compute_key(AbsoluteName& name) noexcept {
  name.file = XXH3_64bits(name.text, name.length);
  name.file = name.file == 0 ? 1 : name.file;
}

// Appends the parts of `path` to name.text, which has no "/" at its end ("" is the root). False if the text
// becomes too long.
bool append_parts(AbsoluteName& name, const char* path) noexcept {
  size_t length = name.length;
  while (*path != 0) {
    while (*path == '/') {
      ++path;
    }
    const char* end = strchrnul(path, '/');
    const auto part_bytes = size_t(end - path);
    if (part_bytes == 2 && path[0] == '.' && path[1] == '.') {
      name.had_parent_parts = true;
      while (length != 0 && name.text[--length] != '/') {
      }
    } else if (part_bytes != 0 && !(part_bytes == 1 && path[0] == '.')) {
      if (length + 1 + part_bytes >= AbsoluteName::kMostBytes) {
        return false;
      }
      name.text[length] = '/';
      memcpy(name.text + length + 1, path, part_bytes);
      length += part_bytes + 1;
    }
    path = end;
  }
  name.length = uint32_t(length);
  return true;
}

// Copies a path of 16 bytes or more. False if it may have "//" in it, or a part that begins with ".".
bool copy_simple_path(char* to, const char* path, size_t length) noexcept {
  SixteenBytes odd_bytes{};
  // For each group of 16 bytes the byte after it is read as well. That is safe: the byte after the last group
  // is the NUL.
  each_group(length, [&](size_t at) {
    const SixteenBytes bytes = sixteen_at(path + at);
    const SixteenBytes next_bytes = sixteen_at(path + at + 1);
    odd_bytes |= reinterpret_cast<SixteenBytes>((bytes == '/') & ((next_bytes == '/') | (next_bytes == '.')));
    memcpy(to + at, &bytes, sizeof(bytes));
  });
  uint64_t halves[2];
  memcpy(halves, &odd_bytes, sizeof(halves));
  return (halves[0] | halves[1]) == 0;
}

// Does what append_parts() does, but faster. Most paths can be copied as they are: they have neither "//" nor
// a part that begins with ".", nor "/" at the end. `path` is the program's memory. If another thread changes
// it meanwhile, name.text is undefined, as is the path that the kernel has read.
bool append_path(AbsoluteName& name, const char* path) noexcept {
  const size_t length = strlen(path);
  const size_t slash_bytes = *path == '/' ? 0 : 1;
  if (length < sizeof(SixteenBytes) || path[length - 1] == '/' || (slash_bytes == 1 && *path == '.') ||
      name.length + slash_bytes + length >= AbsoluteName::kMostBytes) [[unlikely]] {
    return append_parts(name, path);
  }
  char* to = name.text + name.length;
  *to = '/';
  if (!copy_simple_path(to + slash_bytes, path, length)) [[unlikely]] {
    return append_parts(name, path);
  }
  name.length += uint32_t(slash_bytes + length);
  return true;
}

// Appends the name of the directory `at`, which is AT_FDCWD or a descriptor. The name of a descriptor is read
// from the session's mapped file. That file cannot be unmapped meanwhile: the thread that changes the session
// waits until this update has ended. `newest_directory` is read twice, because note_working_directory() may
// have changed it.
bool append_directory_of(AbsoluteName& name, int at) noexcept {
  if (at == AT_FDCWD) {
    const unsigned newest = newest_directory.load(std::memory_order_acquire);
    if (directories[newest][0] == 0) {
      note_working_directory();
    }
    return append_path(name, directories[newest_directory.load(std::memory_order_acquire)]);
  }
  const Description* description = description_of(at);
  if (description != nullptr && description->name != 0 &&
      session.state.load(std::memory_order_acquire) == SessionState::running) {
    const auto* stored = at_offset<penstock_name>(description->name);
    if (stored->length >= AbsoluteName::kMostBytes) {
      return false;
    }
    memcpy(name.text, reinterpret_cast<const char*>(stored + 1), stored->length);
    name.length = stored->length == 1 ? 0 : stored->length;
    return true;
  }
  return name_of_descriptor(at, name) && name.text[0] == '/';
}

}  // namespace

// Stores the absolute name of `path` in `name`, which is the log's buffer. The caller holds an Update. `path`
// can be read safely, because the kernel has read it before. The path of an io_uring request is an exception,
// because the kernel reads it later: there the caller has checked the pointer (is_readable_path()).
bool absolute_name(int at, const char* path, AbsoluteName& name) noexcept {
  name.length = 0;
  name.had_parent_parts = false;
  if (path == nullptr || (path[0] != '/' && !append_directory_of(name, at)) || !append_path(name, path)) {
    return false;
  }
  if (name.length == 0) [[unlikely]] {
    name.text[name.length++] = '/';
  }
  compute_key(name);
  return true;
}

bool is_descriptors_name(const AbsoluteName& name) noexcept {
  constexpr uint32_t kShortest = 8;
  if (name.length < kShortest) {
    return false;
  }
  if (memcmp(name.text, "/dev/std", kShortest) == 0 || memcmp(name.text, "/dev/fd/", kShortest) == 0) {
    return true;
  }
  return memcmp(name.text, "/proc/", 6) == 0 && memmem(name.text, name.length, "/fd/", 4) != nullptr;
}

bool inspect(int at, const char* path, struct stat& status) noexcept {
#if defined(SYS_newfstatat)
  constexpr long kStatCall = SYS_newfstatat;
#else
  constexpr long kStatCall = SYS_fstatat;
#endif
  return system_call(kStatCall, at, as_argument(path), as_argument(&status), AT_EMPTY_PATH) == 0;
}

// Reads the name of a descriptor's file by one readlink in /proc, which never waits for the file's device.
// The digits are written without snprintf(), because that belongs to stdio.
bool name_of_descriptor(int fd, AbsoluteName& name) noexcept {
  char link[32] = "/proc/self/fd/";
  char digits[12];
  size_t digit_count = 0;
  for (unsigned left = unsigned(fd); digit_count == 0 || left != 0; left /= 10) {
    digits[digit_count++] = char('0' + left % 10);
  }
  for (size_t i = 0; i < digit_count; ++i) {
    link[14 + i] = digits[digit_count - 1 - i];
  }
  const long n = system_call(SYS_readlinkat, AT_FDCWD, as_argument(link), as_argument(name.text),
                             AbsoluteName::kMostBytes - 1);
  if (n <= 0) {
    return false;
  }
  name.length = uint32_t(n);
  name.text[n] = 0;
  constexpr char kDeletedSuffix[] = " (deleted)";
  constexpr uint32_t kDeletedSuffixBytes = sizeof(kDeletedSuffix) - 1;
  if (name.length > kDeletedSuffixBytes &&
      memcmp(name.text + name.length - kDeletedSuffixBytes, kDeletedSuffix, kDeletedSuffixBytes) == 0) {
    name.length -= kDeletedSuffixBytes;
  }
  name.had_parent_parts = false;
  compute_key(name);
  return true;
}

// Stores the working directory's name. Called by any thread, inside or outside of an update, and when the
// library is loaded. The text is written before `newest_directory` refers to it.
void note_working_directory() noexcept {
  const unsigned next_buffer = (newest_directory.load(std::memory_order_relaxed) + 1) % kDirectoryBuffers;
  if (system_call(SYS_getcwd, as_argument(directories[next_buffer]), kDirectoryBytes) <= 0) {
    directories[next_buffer][0] = 0;
  }
  newest_directory.store(next_buffer, std::memory_order_release);
}

namespace {

constexpr uint64_t kLeastPageBytes = 4096;

// The number of bytes from `at` to the end of its page. If one byte of a page can be read, all its bytes can.
uint64_t bytes_left_in_page(uintptr_t at) noexcept {
  return kLeastPageBytes - at % kLeastPageBytes;
}

}  // namespace

// Tests each page by a call of rt_sigprocmask() with an invalid operation. The kernel first reads the signal
// set at the given address, and returns EFAULT if the address is not readable. Otherwise it refuses the
// invalid operation, so nothing changes. process_vm_readv() could do this too, but some containers forbid it.
bool is_readable(const void* from, size_t bytes) noexcept {
  constexpr long kInvalidOperation = -1;
  auto at = reinterpret_cast<uintptr_t>(from);
  if (bytes > UINTPTR_MAX - at) {
    return false;
  }
  for (const uintptr_t end = at + bytes; at < end; at += bytes_left_in_page(at)) {
    const uintptr_t signal_set = at - at % sizeof(uint64_t);
    if (signal_set == 0 || system_call(SYS_rt_sigprocmask, kInvalidOperation, long(signal_set), 0,
                                       sizeof(uint64_t)) == -EFAULT) {
      return false;
    }
  }
  return true;
}

bool is_readable_path(const char* text) noexcept {
  for (size_t checked_bytes = 0; checked_bytes < PATH_MAX;) {
    const uint64_t bytes = bytes_left_in_page(reinterpret_cast<uintptr_t>(text) + checked_bytes);
    if (!is_readable(text + checked_bytes, 1)) {
      return false;
    }
    if (memchr(text + checked_bytes, 0, bytes) != nullptr) {
      return true;
    }
    checked_bytes += bytes;
  }
  return false;
}

}  // namespace penstock::interpose
