// Threads: any thread calls any function at any time.
// Lock: this file has no mutex. lock() takes a lock of the system on a file, and does not wait for it. The
// lock ends when its descriptor is closed, also after a kill.
// Memory: names, entries and errors allocate.
// Ctrl-C: this file does not check for a signal. Opens, and calls that make or sync a folder, are repeated
// after EINTR.
// Crash: a power cut may undo a rename or a removal until sync_dir() has synced the folder.
#include "io_backends/files/posix_names.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

#include "io_backends/core/system/durable_file.hpp"
#include "io_backends/core/system/scope.hpp"

namespace penstock {
namespace {

class LockFile final : public Lock {
 public:
  explicit LockFile(Fd fd) : fd_(std::move(fd)) {}

 private:
  Fd fd_;
};

// Returns the text that names the holder of a lock. The boot id shows whether the machine has rebooted since
// the lock was taken.
std::string holder_text() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  return "pid " + std::to_string(::getpid()) + " host " + host.data() + " boot " + boot_id + "\n";
}

std::string read_holder(int fd) {
  std::array<char, 512> text{};
  const ssize_t length = ::pread(fd, text.data(), text.size(), 0);
  std::string holder_line(text.data(), length > 0 ? size_t(length) : 0);
  while (!holder_line.empty() && holder_line.back() == '\n') holder_line.pop_back();
  return holder_line;
}

// Whether a refused lock means that the file system has no locks: Lustre mounted without `flock`, or NFS
// without a lock daemon.
bool means_no_locks(int sys_errno) {
  return sys_errno == ENOSYS || sys_errno == EOPNOTSUPP || sys_errno == ENOLCK || sys_errno == EINVAL;
}

Error no_locks(int sys_errno, const std::string& path) {
  return {Errc::unsupported, sys_errno,
          "cannot lock '" + path +
              "' (mount its file system with locks: for Lustre -o flock, for NFS -o local_lock=none and a "
              "lock daemon; or use a folder on another file system)"};
}

class PosixNamespace final : public Namespace {
 public:
  explicit PosixNamespace(PosixRoot& root) : root_(root) {}

  Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                        const std::function<void(std::string_view name)>& skipped) override;
  Result<Entry> stat(std::string_view name) override;
  Result<void> make_folders(std::string_view folder) override;
  Result<void> rename_noreplace(std::string_view from, std::string_view to) override;
  Result<void> remove(std::string_view name) override;
  Result<void> sync_dir(std::string_view folder) override;
  Result<std::unique_ptr<Lock>> lock(std::string_view name) override;
  Result<uint64_t> free_bytes() override;

 private:
  PosixRoot& root_;
};

// Fills in the members of `entry` except its name, which it already has. Returns false if the name is neither
// an object nor a folder, or was removed meanwhile.
Result<bool> describe(const PosixRoot& root, int folder, const dirent& found, Entry& entry,
                      const std::function<void(std::string_view name)>& skipped) {
  entry.bytes = 0;
  entry.folder = found.d_type == DT_DIR;
  entry.link = false;
  entry.dangling = false;
  if (entry.folder) return true;
  if (found.d_type != DT_REG && found.d_type != DT_LNK && found.d_type != DT_UNKNOWN) {
    skipped(entry.name);
    return false;
  }
  struct stat status {};
  if (::fstatat(folder, found.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return false;
    return root.error(errno, "cannot inspect", entry.name);
  }
  entry.link = S_ISLNK(status.st_mode);
  if (entry.link && ::fstatat(folder, found.d_name, &status, 0) != 0) {
    entry.dangling = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
    return true;  // if the link has another error, opening it reports that
  }
  entry.folder = S_ISDIR(status.st_mode);
  if (entry.folder) return true;
  entry.bytes = uint64_t(status.st_size);
  if (!S_ISREG(status.st_mode)) skipped(entry.name);
  return S_ISREG(status.st_mode);
}

Result<void> PosixNamespace::list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                                      const std::function<void(std::string_view name)>& skipped) {
  PENSTOCK_TRY(check_folder_name(folder));
  PENSTOCK_ASSIGN(Fd fd, root_.open(folder, O_RDONLY | O_DIRECTORY, "cannot list"));
  const std::unique_ptr<DIR, FreeBy<::closedir>> stream(::fdopendir(fd.get()));
  if (!stream) return root_.error(errno, "cannot list", folder);
  const int folder_fd = fd.release();
  std::string prefix(folder);
  if (!prefix.empty()) prefix += '/';
  Entry entry;
  for (;;) {
    errno = 0;
    const dirent* found = ::readdir(stream.get());
    if (found == nullptr) break;
    const std::string_view name(found->d_name);
    if (name == "." || name == ".." || name.starts_with(kTemporaryPrefix)) continue;
    entry.name.assign(prefix).append(name);
    PENSTOCK_ASSIGN(const bool is_listed, describe(root_, folder_fd, *found, entry, skipped));
    if (is_listed && !visit(entry)) return success();
  }
  if (errno != 0) return root_.error(errno, "cannot list", folder);
  return success();
}

Result<Entry> PosixNamespace::stat(std::string_view name) {
  PENSTOCK_TRY(check_folder_name(name));
  PENSTOCK_ASSIGN(const int root, root_.fd());
  struct stat status {};
  if (::fstatat(root, SystemName(name).get(), &status, 0) != 0)
    return root_.error(errno, "cannot inspect", name);
  Entry entry{std::string(name), 0, S_ISDIR(status.st_mode)};
  if (!entry.folder) entry.bytes = uint64_t(status.st_size);
  return entry;
}

Result<void> PosixNamespace::make_folders(std::string_view folder) {
  PENSTOCK_TRY(check_folder_name(folder));
  return root_.make_folders(folder);
}

Result<void> PosixNamespace::rename_noreplace(std::string_view from, std::string_view to) {
  PENSTOCK_TRY(check_object_name(from));
  PENSTOCK_TRY(check_object_name(to));
  PENSTOCK_ASSIGN(const int root, root_.fd());
  const int failed = penstock::rename_noreplace(root, SystemName(from).get(), SystemName(to).get());
  if (failed == 0) return success();
  return root_.error(failed, "cannot rename", std::string(from) + "' to '" + root_.full_path(to));
}

Result<void> PosixNamespace::remove(std::string_view name) {
  PENSTOCK_TRY(check_object_name(name));
  PENSTOCK_ASSIGN(const int root, root_.fd());
  const SystemName system_name(name);
  if (::unlinkat(root, system_name.get(), 0) == 0) return success();
  const int failed = errno;
  if (failed == EISDIR || failed == EPERM) {
    if (::unlinkat(root, system_name.get(), AT_REMOVEDIR) == 0) return success();
    if (errno != ENOTDIR) return root_.error(errno, "cannot remove", name);
  }
  return root_.error(failed, "cannot remove", name);
}

Result<void> PosixNamespace::sync_dir(std::string_view folder) {
  PENSTOCK_TRY(check_folder_name(folder));
  return root_.sync_folder(folder);
}

Result<std::unique_ptr<Lock>> PosixNamespace::lock(std::string_view name) {
  PENSTOCK_TRY(check_object_name(name));
  for (;;) {
    auto opened = root_.open(name, O_RDWR | O_CREAT, "cannot lock");
    if (!opened && opened.error().sys_errno == ENOENT) {
      PENSTOCK_TRY(root_.make_folders(parent_of(name)));
      opened = root_.open(name, O_RDWR | O_CREAT, "cannot lock");
    }
    PENSTOCK_ASSIGN(Fd fd, std::move(opened));
    struct flock whole_file {};
    whole_file.l_type = F_WRLCK;
    whole_file.l_whence = SEEK_SET;
    if (::fcntl(fd.get(), F_OFD_SETLK, &whole_file) != 0) {
      if (means_no_locks(errno)) return no_locks(errno, root_.full_path(name));
      if (errno != EAGAIN && errno != EACCES) return root_.error(errno, "cannot lock", name);
      return make_error(Errc::busy, "'" + root_.full_path(name) + "' is locked by another process (" +
                                        read_holder(fd.get()) + ")");
    }
    // Another process may have removed the lock file between the open and the lock. Then other processes
    // cannot see this lock, so the loop tries again with a new file.
    struct stat opened_status {};
    struct stat named_status {};
    PENSTOCK_ASSIGN(const int root, root_.fd());
    if (::fstat(fd.get(), &opened_status) != 0 ||
        ::fstatat(root, SystemName(name).get(), &named_status, 0) != 0 ||
        opened_status.st_ino != named_status.st_ino || opened_status.st_dev != named_status.st_dev)
      continue;
    // Errors of this write are ignored, because the name of the holder is only information. A full disk must
    // not prevent the lock.
    const std::string text = holder_text();
    if (::ftruncate(fd.get(), 0) == 0 && ::pwrite(fd.get(), text.data(), text.size(), 0) < 0) errno = 0;
    return std::unique_ptr<Lock>(std::make_unique<LockFile>(std::move(fd)));
  }
}

Result<uint64_t> PosixNamespace::free_bytes() {
  std::filesystem::path path = root_.path();
  struct statvfs file_system {};
  while (::statvfs(path.c_str(), &file_system) != 0) {
    if (errno == EINTR) continue;
    if ((errno != ENOENT && errno != ENOTDIR) || !path.has_relative_path())
      return root_.error(errno, "cannot read the free space of", "");
    path = path.parent_path();
  }
  // f_bavail is the free space without root's reserve, as df reports it
  return uint64_t{file_system.f_bavail} * file_system.f_frsize;
}

}  // namespace

std::unique_ptr<Namespace> posix_namespace(PosixRoot& root) {
  return std::make_unique<PosixNamespace>(root);
}

}  // namespace penstock
