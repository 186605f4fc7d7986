// Threads: any thread may call the functions. They share no data that changes.
// Lock: none. Temporary names have a random part, so several processes can write to one folder.
// Memory: texts, paths and errors allocate. An exception removes the temporary file.
// Ctrl-C: this file does not check for a signal. A write is repeated after EINTR. A file is always written to
// its end.
// Crash: write_durable_file() syncs the bytes, then renames the temporary file, then syncs the folder. A kill
// leaves the complete new file or no new file, and perhaps a temporary file ".NAME.ID.tmp".
#include "io_backends/core/system/durable_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "io_backends/core/random.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/system/scope.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// Calls the hook of a test, if there is one.
Result<void> call_hook(const FileStepHook& hook, std::string_view step) {
  return hook ? hook(step) : success();
}

// Whether both paths are names of the same file. It is used after link() has failed with EEXIST, because the
// link may exist nevertheless: if an answer is lost, a network file system repeats the request, and the
// repeated request finds the new name.
bool same_file(int folder, const char* one, const char* other) {
  struct stat one_status {};
  struct stat other_status {};
  return ::fstatat(folder, one, &one_status, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstatat(folder, other, &other_status, AT_SYMLINK_NOFOLLOW) == 0 &&
         one_status.st_dev == other_status.st_dev && one_status.st_ino == other_status.st_ino;
}

}  // namespace

int rename_noreplace(int folder, const char* from, const char* to) {
  if (::renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != EPERM) return errno;
  // EPERM may also be the answer of a container that does not know the call. The link is made before the old
  // name is removed. So after a crash between the two steps both names exist.
  const bool is_linked = ::linkat(folder, from, folder, to, 0) == 0;
  if (is_linked || (errno == EEXIST && std::strcmp(from, to) != 0 && same_file(folder, from, to))) {
    if (::unlinkat(folder, from, 0) == 0 || errno == ENOENT) return 0;
    const int failed = errno;
    if (is_linked) ::unlinkat(folder, to, 0);  // the file has its old name again
    return failed;
  }
  if (errno != EPERM && errno != ENOSYS && errno != EOPNOTSUPP) return errno;
  struct stat status {};
  if (::fstatat(folder, to, &status, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  if (errno != ENOENT) return errno;  // it is unknown whether the name is free
  return ::renameat(folder, from, folder, to) == 0 ? 0 : errno;
}

Result<void> write_all(int fd, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t bytes_written = retry_eintr([&] { return ::write(fd, text.data(), text.size()); });
    if (bytes_written < 0) return errno_error(errno, "cannot write", path.string());
    text.remove_prefix(size_t(bytes_written));
  }
  return success();
}

Result<void> sync_folder(const fs::path& folder) {
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL and EROFS are no errors: some network file systems refuse to sync a folder, and make names durable
  // themselves.
  if (fd && (::fsync(fd.get()) == 0 || errno == EINVAL || errno == EROFS)) return success();
  return errno_error(errno, "cannot sync", folder.string());
}

namespace {

// Writes and syncs the text into a file without a name, which a kill removes, and returns it. Empty if the
// file system has no such files.
Result<Fd> write_nameless(const fs::path& folder, std::string_view text, const fs::path& path,
                          const FileStepHook& hook) {
  Fd fd(::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666));
  if (!fd) return Fd();
  PENSTOCK_TRY(call_hook(hook, "write"));
  PENSTOCK_TRY(write_all(fd.get(), text, path));
  PENSTOCK_TRY(call_hook(hook, "sync"));
  if (::fsync(fd.get()) != 0) return errno_error(errno, "cannot sync", path.string());
  return fd;
}

// Gives a file without a name this name, if it is free. Returns an errno, or 0.
int link_nameless(const Fd& fd, const fs::path& path) {
  const std::string opened = "/proc/self/fd/" + std::to_string(fd.get());
  return ::linkat(AT_FDCWD, opened.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

}  // namespace

// The order of the steps makes the file whole and durable: the bytes are synced before the name exists, and
// the name is synced last. If a step before the sync of the folder fails, the temporary file is removed.
Result<void> write_durable_file(const fs::path& folder, const std::string& name, std::string_view text,
                                bool replace, const FileStepHook& hook) {
  const fs::path path = folder / name;
  PENSTOCK_TRY(call_hook(hook, "create"));
  if (!replace) {  // link() replaces nothing
    PENSTOCK_ASSIGN(const Fd nameless, write_nameless(folder, text, path, hook));
    if (nameless) {
      PENSTOCK_TRY(call_hook(hook, "rename"));
      const int failed = link_nameless(nameless, path);
      if (failed == EEXIST) return errno_error(failed, "cannot name", path.string());
      if (failed == 0) {
        PENSTOCK_TRY(call_hook(hook, "sync_dir"));
        return sync_folder(folder);
      }
      // Without /proc or without hard links the file needs a name from the beginning.
    }
  }
  const fs::path temporary_path = folder / ("." + name + "." + random_id(8) + ".tmp");
  Fd fd(::open(temporary_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd) return errno_error(errno, "cannot create", temporary_path.string());
  AtScopeEnd unfinished([&] { ::unlink(temporary_path.c_str()); });
  PENSTOCK_TRY(call_hook(hook, "write"));
  PENSTOCK_TRY(write_all(fd.get(), text, temporary_path));
  PENSTOCK_TRY(call_hook(hook, "sync"));
  if (::fsync(fd.get()) != 0) return errno_error(errno, "cannot sync", temporary_path.string());
  // The result of close() is checked, because network file systems may report a failed write only then.
  if (const int failed = fd.close(); failed != 0)
    return errno_error(failed, "cannot close", temporary_path.string());
  PENSTOCK_TRY(call_hook(hook, "rename"));
  const int rename_errno = replace ? (::rename(temporary_path.c_str(), path.c_str()) == 0 ? 0 : errno)
                                   : rename_noreplace(AT_FDCWD, temporary_path.c_str(), path.c_str());
  if (rename_errno != 0) return errno_error(rename_errno, "cannot name", path.string());
  unfinished.cancel();
  PENSTOCK_TRY(call_hook(hook, "sync_dir"));
  return sync_folder(folder);
}

}  // namespace penstock
