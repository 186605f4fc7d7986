// The root folder of a back end over files. All names are relative to the root, and have been checked by
// check_object_name() or check_folder_name().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {

// Prefix of the temporary name of an unpublished object, if the file system has no O_TMPFILE. Lists skip such
// names. A killed process leaves such a file, which may be deleted.
inline constexpr std::string_view kTemporaryPrefix = ".penstock-tmp-";

// Removes such files in and below `folder` ("" is the root), and ignores errors. No process may write in the
// folder at that time. Does nothing on a back end without native paths.
void sweep_temporaries(const Backend& backend, std::string_view folder = "");

// A name with a terminating 0, for system calls. It does not allocate. "" becomes ".". Object names have at
// most 1024 bytes, temporary names a few more.
class SystemName {
 public:
  explicit SystemName(std::string_view name) {
    if (name.empty()) name = ".";
    // No memcpy, because its vector instructions are slow after a system call that copied a sample: the first
    // costs 0.1 us.
    std::size_t i = 0;
    for (; i < name.size() && name[i] != '\0'; ++i) text_[i] = name[i];
    text_[i] = '\0';
  }
  const char* get() const { return text_; }

 private:
  char text_[2048];
};

// The parent folder of a name: "a/b" for "a/b/c", "" for "c".
std::string_view parent_of(std::string_view name);

// The result of full_io(): the bytes that were transferred, and the errno or 0.
//
// full_io() calls `some(done)` until `wanted` bytes are transferred, the end is reached, or it fails. Each
// call transfers at most wanted - done bytes and returns as read(2) does. After EINTR it is called again, so
// a signal never cuts a read or write short. The caller checks for signals between pieces. Does not allocate.
struct FullIo {
  std::size_t done = 0;
  int sys_errno = 0;
};
template <class Some>
FullIo full_io(std::size_t wanted, Some some) {
  FullIo io;
  while (io.done < wanted) {
    const auto moved = some(io.done);
    if (moved > 0) {
      io.done += static_cast<std::size_t>(moved);
    } else if (moved == 0) {
      break;
    } else if (errno != EINTR) {
      io.sys_errno = errno;
      break;
    }
  }
  return io;
}

// The root folder: opens files in it, and makes and syncs folders. Any thread.
class PosixRoot {
 public:
  // Makes no system call on the folder. A relative path is resolved with the current folder at this moment.
  explicit PosixRoot(std::string_view path);
  ~PosixRoot();
  PosixRoot(const PosixRoot&) = delete;
  PosixRoot& operator=(const PosixRoot&) = delete;

  // Whether to use nameless files (O_TMPFILE), which disappear even after SIGKILL. A writer sets it to false
  // for ever if the file system has none. Then an object has a temporary name until it is published.
  std::atomic<bool> nameless{true};
  // Whether a nameless file can be linked by its descriptor. A writer sets it to false for ever if the kernel
  // needs its path in /proc.
  std::atomic<bool> link_by_descriptor{true};

  const std::filesystem::path& path() const { return path_; }
  std::string full(std::string_view name) const;  // the full path of a name, for messages
  Error error(int sys_errno, std::string_view operation, std::string_view name) const {
    return errno_error(sys_errno, operation, full(name));
  }

  // The root's descriptor, opened by the first call. It has O_PATH, for openat() and similar calls.
  Result<int> fd();

  // Whether the folder of fd() was removed. make_folders() makes it again.
  bool gone() const;

  // Opens a name in the root. Adds O_CLOEXEC, so that child processes do not inherit the descriptor.
  Result<Fd> open(std::string_view name, int flags, std::string_view operation);

  // Makes the folder and all its missing parents, including the root and its parents. Only the root and its
  // parents are synced.
  Result<void> make_folders(std::string_view folder);

  // Makes the entries of the folder durable by fsync.
  Result<void> sync_folder(std::string_view folder);
  // Makes the entries of every folder from the parent of `name` up to the root durable by fsync.
  Result<void> sync_folders_above(std::string_view name);

 private:
  Result<void> make_root();

  const std::filesystem::path path_;
  std::atomic<int> fd_{-1};
  std::mutex mutex_;
  // All descriptors that fd_ has had, because another thread may still use an old one.
  std::vector<Fd> opened_;
};

}  // namespace penstock
