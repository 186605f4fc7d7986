// Builds the absolute names of files, without a lock and without heap memory, in the program's wrapped calls.
//
// Threads: the program's thread that makes the call. All functions run within an Update of its log, except
// note_working_directory(), inspect(), is_readable() and is_readable_path(), which any code may call.
// Locks: none. `directory` is the only variable that several threads write.
// Memory: static buffers and the caller's. Only functions of libc are called that POSIX allows in handlers,
// or that only read memory (strchrnul, memmem). snprintf() is avoided, so that neither stdio nor the locale
// is used.
// Signals: a nested handler does not build names, because the log's buffer is in use.
// Everything else is direct system calls, which are not counted.
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

// The name of the working directory, in the newest of eight buffers. A thread may copy a name while another
// thread calls chdir(). The copy is complete unless there are eight calls meanwhile. Two threads that call
// chdir() at the same instant may write to the same buffer. The process has only one directory then, and its
// next chdir() repairs the name.
constexpr std::size_t kDirectories = 8;
constexpr std::size_t kDirectoryRoom = 4096;
char directories[kDirectories][kDirectoryRoom];
std::atomic<unsigned> directory{0};

// The key of the name. 0 means no file, so it is never a key.
void finish_name(AbsoluteName& name) noexcept {
  name.file = XXH3_64bits(name.text, name.length);
  name.file = name.file == 0 ? 1 : name.file;
}

// Appends the parts of `path` to the text, which has no "/" at its end ("" is the root). False: it is too
// long.
bool append_parts(AbsoluteName& name, const char* path) noexcept {
  std::size_t length = name.length;
  while (*path != 0) {
    while (*path == '/') {
      ++path;
    }
    const char* end = strchrnul(path, '/');
    const auto part = static_cast<std::size_t>(end - path);
    if (part == 2 && path[0] == '.' && path[1] == '.') {
      name.had_parent_parts = true;
      while (length != 0 && name.text[--length] != '/') {
      }
    } else if (part != 0 && !(part == 1 && path[0] == '.')) {
      if (length + 1 + part >= AbsoluteName::kRoom) {
        return false;
      }
      name.text[length] = '/';
      memcpy(name.text + length + 1, path, part);
      length += part + 1;
    }
    path = end;
  }
  name.length = static_cast<std::uint32_t>(length);
  return true;
}

// Copies a path of 16 bytes or more. False if it may have "//" in it, or a part that begins with ".".
bool copy_plain(char* to, const char* path, std::size_t length) noexcept {
  Sixteen found{};
  in_sixteens(length, [&](std::size_t at) {  // also reads one byte after each group of 16; after the last
                                             // group that is the NUL
    const Sixteen bytes = sixteen_at(path + at);
    const Sixteen next_bytes = sixteen_at(path + at + 1);
    found |= reinterpret_cast<Sixteen>((bytes == '/') & ((next_bytes == '/') | (next_bytes == '.')));
    memcpy(to + at, &bytes, sizeof(bytes));
  });
  std::uint64_t halves[2];
  memcpy(halves, &found, sizeof(halves));
  return (halves[0] | halves[1]) == 0;
}

// Does what append_parts() does, but faster. Most paths can be copied as they are: they have neither "//" nor
// a part that begins with ".", nor "/" at the end. `path` is the program's memory. If another thread changes
// it meanwhile, the text is undefined, and so is what the kernel read.
bool append(AbsoluteName& name, const char* path) noexcept {
  const std::size_t length = strlen(path);
  const std::size_t slash = *path == '/' ? 0 : 1;
  if (length < sizeof(Sixteen) || path[length - 1] == '/' || (slash == 1 && *path == '.') ||
      name.length + slash + length >= AbsoluteName::kRoom) [[unlikely]] {
    return append_parts(name, path);
  }
  char* to = name.text + name.length;
  *to = '/';
  if (!copy_plain(to + slash, path, length)) [[unlikely]] {
    return append_parts(name, path);
  }
  name.length += static_cast<std::uint32_t>(slash + length);
  return true;
}

// The name of a descriptor is read from the session's mapped file. That file stays mapped while the session
// runs and this update is marked, because the thread that changes the session waits for the update.
// `directory` is read again after note_working_directory(), which may have changed it.
bool append_directory_of(AbsoluteName& name, int at) noexcept {
  if (at == AT_FDCWD) {
    const unsigned newest = directory.load(std::memory_order_acquire);
    if (directories[newest][0] == 0) {
      note_working_directory();
    }
    return append(name, directories[directory.load(std::memory_order_acquire)]);
  }
  const Description* known = description_of(at);
  if (known != nullptr && known->name != 0 &&
      session.state.load(std::memory_order_acquire) == SessionState::running) {
    const auto* in_session = at_offset<penstock_name>(known->name);
    if (in_session->length >= AbsoluteName::kRoom) {
      return false;
    }
    memcpy(name.text, reinterpret_cast<const char*>(in_session + 1), in_session->length);
    name.length = in_session->length == 1 ? 0 : in_session->length;
    return true;
  }
  return name_of_descriptor(at, name) && name.text[0] == '/';
}

}  // namespace

// Within an update: `name` is the log's buffer. The kernel has accepted `path` before, except for requests of
// io_uring, whose path must be readable when they are submitted.
bool absolute_name(int at, const char* path, AbsoluteName& name) noexcept {
  name.length = 0;
  name.had_parent_parts = false;
  if (path == nullptr || (path[0] != '/' && !append_directory_of(name, at)) || !append(name, path)) {
    return false;
  }
  if (name.length == 0) [[unlikely]] {
    name.text[name.length++] = '/';
  }
  finish_name(name);
  return true;
}

bool is_descriptors_name(const AbsoluteName& name) noexcept {
  constexpr std::uint32_t kShortest = 8;
  if (name.length < kShortest) {
    return false;
  }
  if (memcmp(name.text, "/dev/std", kShortest) == 0 || memcmp(name.text, "/dev/fd/", kShortest) == 0) {
    return true;
  }
  return memcmp(name.text, "/proc/", 6) == 0 && memmem(name.text, name.length, "/fd/", 4) != nullptr;
}

bool inspect(int at, const char* path, struct stat& about) noexcept {
#if defined(SYS_newfstatat)
  constexpr long kStat = SYS_newfstatat;
#else
  constexpr long kStat = SYS_fstatat;
#endif
  return system_call(kStat, at, as_argument(path), as_argument(&about), AT_EMPTY_PATH) == 0;
}

// One readlink in /proc, made directly; it never waits for the file's device. The digits are written by hand,
// because snprintf() is stdio.
bool name_of_descriptor(int fd, AbsoluteName& name) noexcept {
  char link[32] = "/proc/self/fd/";
  char digits[12];
  std::size_t count = 0;
  for (unsigned left = static_cast<unsigned>(fd); count == 0 || left != 0; left /= 10) {
    digits[count++] = static_cast<char>('0' + left % 10);
  }
  for (std::size_t i = 0; i < count; ++i) {
    link[14 + i] = digits[count - 1 - i];
  }
  const long n = system_call(SYS_readlinkat, AT_FDCWD, as_argument(link), as_argument(name.text),
                             AbsoluteName::kRoom - 1);
  if (n <= 0) {
    return false;
  }
  name.length = static_cast<std::uint32_t>(n);
  name.text[n] = 0;
  constexpr char kDeleted[] = " (deleted)";
  constexpr std::uint32_t kDeletedBytes = sizeof(kDeleted) - 1;
  if (name.length > kDeletedBytes &&
      memcmp(name.text + name.length - kDeletedBytes, kDeleted, kDeletedBytes) == 0) {
    name.length -= kDeletedBytes;
  }
  name.had_parent_parts = false;
  finish_name(name);
  return true;
}

// Any thread, in or out of an update; also when the library is loaded. The text is written before `directory`
// refers to it.
void note_working_directory() noexcept {
  const unsigned next = (directory.load(std::memory_order_relaxed) + 1) % kDirectories;
  if (system_call(SYS_getcwd, as_argument(directories[next]), kDirectoryRoom) <= 0) {
    directories[next][0] = 0;
  }
  directory.store(next, std::memory_order_release);
}

namespace {

constexpr std::uint64_t kLeastPage = 4096;

// Bytes from `at` to the end of its page. If one byte of a page can be read, all can.
std::uint64_t bytes_left_in_page(const void* at) noexcept {
  return kLeastPage - reinterpret_cast<std::uint64_t>(at) % kLeastPage;
}

}  // namespace

// Calls rt_sigprocmask() with an invalid operation. The kernel first reads the signal set at the address,
// which fails with EFAULT if it is not readable. Then it refuses the operation, so nothing changes. No
// container forbids this call, unlike process_vm_readv().
bool is_readable(const void* from, std::size_t bytes) noexcept {
  constexpr long kNoWay = -1;
  const char* at = static_cast<const char*>(from);
  if (bytes > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(from)) {
    return false;
  }
  for (const char* const end = at + bytes; at < end; at += bytes_left_in_page(at)) {
    const char* const set = at - reinterpret_cast<std::uint64_t>(at) % sizeof(std::uint64_t);
    if (set == nullptr ||
        system_call(SYS_rt_sigprocmask, kNoWay, as_argument(set), 0, sizeof(std::uint64_t)) == -EFAULT) {
      return false;
    }
  }
  return true;
}

bool is_readable_path(const char* text) noexcept {
  for (std::size_t done = 0; done < PATH_MAX;) {
    const std::uint64_t bytes = bytes_left_in_page(text + done);
    if (!is_readable(text + done, 1)) {
      return false;
    }
    if (memchr(text + done, 0, bytes) != nullptr) {
      return true;
    }
    done += bytes;
  }
  return false;
}

}  // namespace penstock::interpose
