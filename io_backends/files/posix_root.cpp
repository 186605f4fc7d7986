// Threads: any thread calls any function at any time.
// Lock: mutex_ guards descriptors_ and changes of fd_. It is held during an open or stat of the root, never
// during an mkdir or fsync. fd_ is read without the lock: the acquire load pairs with the release store.
// Memory: names and errors allocate. SystemName does not.
// Ctrl-C: this file does not check for a signal. Calls that open, make or sync a folder are repeated after
// EINTR.
// Crash: a power cut may remove a new folder until its parent folder is synced. make_root() syncs the parents
// of the folders that it makes. After make_folders() the caller syncs with sync_folders_above() or
// sync_folder().
#include "io_backends/files/posix_root.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace penstock {
namespace {

std::filesystem::path resolve(std::string_view path) {
  std::error_code ignored;
  const std::filesystem::path absolute = std::filesystem::absolute(path, ignored).lexically_normal();
  if (absolute.has_relative_path() && !absolute.has_filename()) return absolute.parent_path();
  return absolute.empty() ? std::filesystem::path(path) : absolute;
}

Fd open_folder(const std::filesystem::path& path, int flags) {
  return Fd(retry_eintr([&] { return ::openat(AT_FDCWD, path.c_str(), flags | O_DIRECTORY | O_CLOEXEC); }));
}

Result<void> sync_and_close(Fd folder, const PosixRoot& root, std::string_view name) {
  // EINVAL is no error: this file system does not sync folders. The result of close() is checked, too,
  // because network file systems may report a failed write only then.
  if (retry_eintr([&] { return ::fsync(folder.get()); }) != 0 && errno != EINVAL)
    return root.error(errno, "cannot sync folder", name);
  if (const int failed = folder.close(); failed != 0) return root.error(failed, "cannot close folder", name);
  return success();
}

// Whether this process may call linkat(). A seccomp filter refuses the call before the kernel finds that the
// name is empty.
bool may_link() {
  return ::syscall(SYS_linkat, -1, "", -1, "", 0) == 0 || errno != EPERM;
}

bool has_space_but_no_inodes(const std::filesystem::path& path) {
  struct statvfs system {};
  return ::statvfs(path.c_str(), &system) == 0 && system.f_files != 0 && system.f_favail == 0 &&
         system.f_bavail != 0;
}

// The umask of this process, as its line in /proc shows it; "" if it leaves the own user all rights. The call
// umask() would change it for all threads.
std::string umask_of_own_user() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("Umask:")) continue;
    const std::string mask = line.substr(line.find_first_not_of("\t ", 6));
    return (std::strtoul(mask.c_str(), nullptr, 8) & 0700U) != 0 ? mask : "";
  }
  return "";
}

}  // namespace

Error PosixRoot::error(int sys_errno, std::string_view operation, std::string_view name) const {
  Error error = errno_error(sys_errno, operation, full_path(name));
  if (sys_errno == ENOSPC && has_space_but_no_inodes(path_))
    error.what += " (the file system has no free inodes: remove files)";
  if (const std::string mask = sys_errno == EACCES ? umask_of_own_user() : ""; !mask.empty())
    error.what +=
        " (the umask " + mask + " removes the owner's permissions: choose another umask, such as 022)";
  return error;
}

std::string_view parent_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}

PosixRoot::PosixRoot(std::string_view path) : use_nameless_files(may_link()), path_(resolve(path)) {}

PosixRoot::~PosixRoot() = default;

std::string PosixRoot::full_path(std::string_view name) const {
  return name.empty() ? path_.string() : (path_ / name).string();
}

// Returns the root's descriptor. Takes the lock only to open the root: at the first call, and after
// make_root() has found the root removed. Every descriptor stays open as long as this object exists, even
// after make_root() has replaced it. Otherwise another file could get the number of a closed descriptor while
// a thread still uses that number.
Result<int> PosixRoot::fd() {
  if (const int fd = fd_.load(std::memory_order_acquire); fd >= 0) return fd;
  const std::lock_guard lock(mutex_);
  if (const int fd = fd_.load(std::memory_order_relaxed); fd >= 0) return fd;
  Fd opened = open_folder(path_, O_PATH);
  if (!opened) return error(errno, "cannot open folder", "");
  // fd_ gets the number only after push_back(), which may throw. In that case `opened` closes the descriptor.
  descriptors_.push_back(std::move(opened));
  fd_.store(descriptors_.back().get(), std::memory_order_release);
  return descriptors_.back().get();
}

// Whether the folder of fd_ was removed. It may be called with or without the lock, because fd_ is the only
// member that it reads and that can change.
bool PosixRoot::is_removed() const {
  struct stat status {};
  const int fd = fd_.load(std::memory_order_acquire);
  if (fd < 0) return false;
  if (::fstat(fd, &status) != 0) return errno == ESTALE;
  // On FUSE the link count of a removed folder may not be 0. So it is also checked whether the folder's name
  // still exists.
  return status.st_nlink == 0 || (::stat(path_.c_str(), &status) != 0 && errno == ENOENT);
}

void remove_temporary_files(const Backend& backend, std::string_view folder) {
  const auto root = backend.native_path(folder);
  if (!root) return;
  std::error_code failure;
  std::filesystem::recursive_directory_iterator entry(*root, failure);
  const std::filesystem::recursive_directory_iterator end;
  while (!failure && entry != end) {
    // The file is removed only after the iterator has moved on, because the iterator reads the current entry
    // in order to move on.
    const std::filesystem::path path = entry->path();
    entry.increment(failure);
    std::error_code ignored;
    if (path.filename().native().starts_with(kTemporaryPrefix)) std::filesystem::remove(path, ignored);
  }
}

Result<Fd> PosixRoot::open(std::string_view name, int flags, std::string_view operation) {
  PENSTOCK_ASSIGN(const int root, fd());
  const SystemName system_name(name);
  Fd opened(retry_eintr([&] { return ::openat(root, system_name.get(), flags | O_CLOEXEC, 0666); }));
  if (!opened) return error(errno, operation, name);
  return opened;
}

// Makes the root and its parents. Threads and processes may make the same folders at the same time, so EEXIST
// is no error. An existing folder is assumed to be synced by the process that made it.
Result<void> PosixRoot::make_root() {
  {
    // The old descriptor is discarded only here, under the lock. Without the lock, two threads could both see
    // that the folder was removed. The slower one would then discard the descriptor that the faster one has
    // opened.
    const std::lock_guard lock(mutex_);
    if (fd_.load(std::memory_order_relaxed) >= 0 && !is_removed()) return success();
    fd_.store(-1, std::memory_order_release);
  }
  std::filesystem::path path;
  for (const std::filesystem::path& part : path_) {
    const std::filesystem::path parent = path;
    path /= part;
    const int failed = retry_eintr([&] { return ::mkdir(path.c_str(), 0777); }) == 0 ? 0 : errno;
    if (failed == 0) {
      // The parent folder is synced before the next level is made. So the root survives a power cut, and
      // objects need not sync the folders above it. A parent folder without read permission is not synced.
      Fd folder = open_folder(parent, O_RDONLY);
      if (!folder && errno != EACCES) return error(errno, "cannot open folder", parent.string());
      if (folder) PENSTOCK_TRY(sync_and_close(std::move(folder), *this, ""));
    } else if (struct stat status{}; ::stat(path.c_str(), &status) == 0) {
      if (!S_ISDIR(status.st_mode)) return error(ENOTDIR, "cannot make folder below", path.string());
    } else {
      return error(failed, "cannot make folder", path.string());
    }
  }
  PENSTOCK_TRY(fd());
  return success();
}

// Makes the folder and its missing parents, including the root. Only the root and its parents are synced.
Result<void> PosixRoot::make_folders(std::string_view folder) {
  PENSTOCK_TRY(make_root());
  if (folder.empty()) return success();
  PENSTOCK_ASSIGN(const int root, fd());
  for (size_t end = 0; end < folder.size();) {
    end = std::min(folder.find('/', end + 1), folder.size());
    const SystemName part(folder.substr(0, end));
    if (retry_eintr([&] { return ::mkdirat(root, part.get(), 0777); }) != 0 && errno != EEXIST)
      return error(errno, "cannot make folder", folder.substr(0, end));
  }
  struct stat status {};
  if (const SystemName whole(folder); ::fstatat(root, whole.get(), &status, 0) != 0)
    return error(errno, "cannot make folder", folder);
  if (!S_ISDIR(status.st_mode)) return error(ENOTDIR, "cannot make folder", folder);
  return success();
}

Result<void> PosixRoot::sync_folder(std::string_view folder) {
  PENSTOCK_ASSIGN(Fd opened, open(folder, O_RDONLY | O_DIRECTORY, "cannot open folder"));
  return sync_and_close(std::move(opened), *this, folder);
}

// Syncs all folders from the parent of `name` up to the root. A Writer calls this after it has given the
// object its name, because an earlier sync would not include the name. The order of the syncs does not
// matter: the object is durable only if all of them succeed.
Result<void> PosixRoot::sync_folders_above(std::string_view name) {
  do {
    name = parent_of(name);
    PENSTOCK_TRY(sync_folder(name));
  } while (!name.empty());
  return success();
}

}  // namespace penstock
