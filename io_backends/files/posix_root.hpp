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

// Prefix of the temporary name that an unpublished object has on a file system without O_TMPFILE. On other
// file systems, an object that replaces another one has such a name for a moment. Listings skip names with
// this prefix. A killed process may leave such a file behind, and the user may delete it.
inline constexpr std::string_view kTemporaryPrefix = ".penstock-tmp-";

// Removes the files with kTemporaryPrefix in and below `folder` ("" is the root), and ignores errors. No
// process may write in the folder at that time. Does nothing on a back end without native paths.
void remove_temporary_files(const Backend& backend, std::string_view folder = "");

// A copy of a name with a terminating zero byte, for system calls. It does not allocate. "" becomes ".".
// Object names have at most 1024 bytes, temporary names a few more.
class SystemName {
 public:
  explicit SystemName(std::string_view name) {
    if (name.empty()) name = ".";
    // A loop instead of memcpy: after a system call that copied a sample, the first vector instruction of
    // memcpy costs 0.1 us.
    size_t i = 0;
    for (; i < name.size() && name[i] != '\0'; ++i) text_[i] = name[i];
    text_[i] = '\0';
  }
  const char* get() const { return text_; }

 private:
  char text_[2048];
};

// The parent folder of a name: "a/b" for "a/b/c", "" for "c".
std::string_view parent_of(std::string_view name);

// The result of full_io(): how many bytes were transferred, and the errno or 0.
//
// full_io() calls `transfer(done)` until `wanted` bytes are transferred, the end is reached, or it fails.
// Each call of `transfer` transfers at most wanted - done bytes and returns as read(2) does. After EINTR
// `transfer` is called again, so a signal never cuts a read or write short. To react to a signal, the caller
// checks interrupted() between its calls of full_io(). Does not allocate.
struct FullIo {
  size_t done = 0;
  int sys_errno = 0;
};
template <class Transfer>
FullIo full_io(size_t wanted, Transfer transfer) {
  FullIo io;
  while (io.done < wanted) {
    const auto moved = transfer(io.done);
    if (moved > 0) {
      io.done += size_t(moved);
    } else if (moved == 0) {
      break;
    } else if (errno != EINTR) {
      io.sys_errno = errno;
      break;
    }
  }
  return io;
}

// Opens files in the root folder of a back end, and makes and syncs folders in it. Any thread may call it.
class PosixRoot {
 public:
  // The constructor makes no system call on the folder. It resolves a relative path with the current folder.
  explicit PosixRoot(std::string_view path);
  ~PosixRoot();
  PosixRoot(const PosixRoot&) = delete;
  PosixRoot& operator=(const PosixRoot&) = delete;

  // Whether to use nameless files (O_TMPFILE), which disappear even after SIGKILL. False if this process may
  // not make links, by which such a file gets its name (a seccomp filter). A writer sets this to false for
  // ever if the file system has no such files. Then an object has a temporary name until it is
  // published.
  std::atomic<bool> use_nameless_files;
  // Whether a nameless file can be linked by its descriptor. A writer sets this to false for ever if the
  // kernel needs the file's path in /proc for that.
  std::atomic<bool> can_link_by_descriptor{true};

  const std::filesystem::path& path() const { return path_; }
  std::string full_path(std::string_view name) const;  // the full path of a name, for messages
  // Also says if no inodes are free (ENOSPC), or if the umask takes rights from the own user (EACCES).
  Error error(int sys_errno, std::string_view operation, std::string_view name) const;

  // The root's descriptor, opened by the first call. It has O_PATH, for openat() and similar calls.
  Result<int> fd();

  // Whether the folder of fd() was removed. make_folders() makes it again.
  bool is_removed() const;

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
  // All descriptors that fd_ has or had. They stay open, because another thread may still use an earlier one.
  std::vector<Fd> descriptors_;
};

}  // namespace penstock
