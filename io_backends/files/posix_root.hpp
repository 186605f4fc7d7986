// A folder of the operating system as the root of a back end: what posix and its kin share. All names are
// relative to the root and have passed check_object_name() or check_folder_name().
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

// Names that an object has while it is being made where the file system has no O_TMPFILE; lists leave them
// out. One that stays behind belonged to a process that was killed and may be deleted.
inline constexpr std::string_view kTemporaryPrefix = ".penstock-tmp-";

// Removes those at and below `folder` ("" is the root), as far as it goes. For whoever knows that nobody is
// at work there; nothing happens on a back end without native paths.
void sweep_temporaries(const Backend& backend, std::string_view folder = "");

// A name as the system wants it, without allocating. "" becomes ".". Object names have at most 1024 bytes,
// and temporary ones little more.
class SystemName {
 public:
  explicit SystemName(std::string_view name) {
    if (name.empty()) name = ".";
    // Not memcpy: the first vector instruction after a system call that copied a sample costs 0.1 us.
    std::size_t i = 0;
    for (; i < name.size() && name[i] != '\0'; ++i) text_[i] = name[i];
    text_[i] = '\0';
  }
  const char* get() const { return text_; }

 private:
  char text_[2048];
};

// "a/b" for "a/b/c"; "" for "c".
std::string_view parent_of(std::string_view name);

// Calls `some(done)`, which moves at most wanted - done bytes and returns as read(2) does, until all bytes
// are moved, the end is reached or it fails; EINTR is tried again.
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

// Any thread.
class PosixRoot {
 public:
  // Touches nothing. A relative path is taken from the current folder now.
  explicit PosixRoot(std::string_view path);
  ~PosixRoot();
  PosixRoot(const PosixRoot&) = delete;
  PosixRoot& operator=(const PosixRoot&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string full(std::string_view name) const;  // for messages
  Error error(int sys_errno, std::string_view operation, std::string_view name) const {
    return errno_error(sys_errno, operation, full(name));
  }

  // The root's descriptor (O_PATH: fit for the ...at() calls), opened when first asked for.
  Result<int> fd();

  // Whether somebody removed the folder that fd() stands for. make_folders() then makes it anew.
  bool gone() const;

  // O_CLOEXEC is added.
  Result<Fd> open(std::string_view name, int flags, std::string_view operation);

  // Makes the folder and what is missing on the way, the root and its parents included.
  Result<void> make_folders(std::string_view folder);

  // fsync of the folder.
  Result<void> sync_folder(std::string_view folder);
  // fsync of every folder from that of `name` up to the root.
  Result<void> sync_folders_above(std::string_view name);

 private:
  Result<void> make_root();

  const std::filesystem::path path_;
  std::atomic<int> fd_{-1};
  std::mutex mutex_;
  std::vector<Fd> opened_;  // all that fd_ ever was: another thread may still use an old one
};

}  // namespace penstock
