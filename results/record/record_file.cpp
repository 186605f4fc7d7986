// Threads: any thread. The functions share nothing that changes.
// Lock: none. Names have a random part, so several processes can write to one folder.
// Memory: texts, paths and errors allocate. An exception removes the temporary file.
// Ctrl-C: not checked. A write is repeated after EINTR. A file is always written to its end.
// Crash: write_whole() syncs the bytes, then renames the temporary file, then syncs the folder. A kill leaves
// the complete file, or none and perhaps a temporary file ".NAME.ID.tmp".
#include "results/record/record_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/system/scope.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".jsonl";
constexpr std::size_t kShortId = 8;

Result<void> before(const StoreStep& step, std::string_view name) {
  return step ? step(name) : success();
}

// Whether both paths are names of the same file. A network file system may make the second name although its
// answer is lost. The repeated request then fails with EEXIST for the file's own name.
bool same_file(const fs::path& one, const fs::path& other) {
  struct stat first {};
  struct stat second {};
  return ::lstat(one.c_str(), &first) == 0 && ::lstat(other.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// Renames without replacing; returns 0 or an errno. If the file system cannot do that in one call, it makes a
// hard link and then removes the old name. If it has no hard links either, it checks and then renames.
// Another writer could take the name in between, and then only the random id in the name prevents a
// collision.
int rename_noreplace(const fs::path& from, const fs::path& to) {
  if (::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (::link(from.c_str(), to.c_str()) != 0 && !(errno == EEXIST && same_file(from, to))) {
    if (errno != EPERM && errno != ENOSYS && errno != EOPNOTSUPP) return errno;
    if (::access(to.c_str(), F_OK) == 0) return EEXIST;
    return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  }
  ::unlink(from.c_str());
  return 0;
}

// "2026-11-20T09:30:00Z" becomes "20261120T093000Z". Drops all other characters, so that a name from a record
// cannot leave the folder.
std::string name_part(std::string_view text, std::string_view extra) {
  std::string part;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain || extra.find(c) != std::string_view::npos) part += c;
  }
  return part;
}

// Makes the folder if it is missing. Syncs its parent, so that the new name is durable too.
Result<void> make_folder(const fs::path& folder) {
  std::error_code code;
  if (fs::is_directory(folder, code)) return success();
  fs::create_directories(folder, code);
  if (code) return errno_error(code.value(), "cannot make the results folder", folder.string());
  const fs::path parent = fs::absolute(folder, code).lexically_normal().parent_path();
  return sync_folder(parent.empty() ? fs::path(".") : parent);
}

}  // namespace

std::string seal_line(std::string_view record, std::size_t line, std::size_t of) {
  std::string sealed(record.substr(0, record.size() - 1));  // without its '}'
  sealed += fmt::format(R"(,"seal":{{"line":{},"of":{})", line, of);
  return sealed + seal_end(sealed);
}

std::string seal_end(std::string_view text) {
  return fmt::format("{}{:08x}{}", kSumBegins, crc32c(std::as_bytes(std::span(text))), kSumEnds);
}

Result<void> write_all(int fd, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t wrote = retry_eintr([&] { return ::write(fd, text.data(), text.size()); });
    if (wrote < 0) return errno_error(errno, "cannot write", path.string());
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return success();
}

Result<void> sync_folder(const fs::path& folder) {
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some network file systems refuse to sync a folder, and make names durable themselves.
  if (fd && (::fsync(fd.get()) == 0 || errno == EINVAL || errno == EROFS)) return success();
  return errno_error(errno, "cannot sync", folder.string());
}

// The order of the steps makes the file whole and durable: the bytes are synced before the name exists, and
// the name is synced last. A failure before the last step removes the temporary file.
Result<void> write_whole(const fs::path& folder, const std::string& name, std::string_view text, bool replace,
                         const StoreStep& step) {
  PENSTOCK_TRY(make_folder(folder));
  const fs::path temporary = folder / ("." + name + "." + random_id(kShortId) + ".tmp");
  PENSTOCK_TRY(before(step, "create"));
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd) return errno_error(errno, "cannot create", temporary.string());
  AtScopeEnd unfinished([&] { ::unlink(temporary.c_str()); });
  PENSTOCK_TRY(before(step, "write"));
  PENSTOCK_TRY(write_all(fd.get(), text, temporary));
  PENSTOCK_TRY(before(step, "sync"));
  if (::fsync(fd.get()) != 0) return errno_error(errno, "cannot sync", temporary.string());
  // Network file systems report write errors here.
  if (const int failed = fd.close(); failed != 0)
    return errno_error(failed, "cannot close", temporary.string());
  PENSTOCK_TRY(before(step, "rename"));
  const fs::path path = folder / name;
  const int failure = replace ? (::rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno)
                              : rename_noreplace(temporary, path);
  if (failure != 0) return errno_error(failure, "cannot name", path.string());
  unfinished.cancel();
  PENSTOCK_TRY(before(step, "sync_dir"));
  return sync_folder(folder);
}

std::string random_id(std::size_t digits) {
  std::string id;
  while (id.size() < digits) {
    std::uint64_t bits = 0;
    if (::getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits))
      bits = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
             (static_cast<std::uint64_t>(::getpid()) << 40);
    for (int i = 0; i < 16 && id.size() < digits; ++i, bits >>= 4) id += "0123456789abcdef"[bits & 15];
  }
  return id;
}

Result<fs::path> write_records(const fs::path& folder, std::span<const Record> records,
                               const StoreStep& step) {
  if (records.empty()) return make_error(Errc::internal, "there is no record to write");
  std::string text;
  for (std::size_t i = 0; i < records.size(); ++i)
    text += seal_line(record_line(records[i]), i + 1, records.size()) + "\n";
  const Record& first = records.front();
  const std::string stem = name_part(first.started, "") + "-" + name_part(first.command, "_-") + "-";
  std::string id = name_part(first.id, "").substr(0, kShortId);
  if (id.size() < kShortId) id = random_id(kShortId);
  for (int attempt = 0;; ++attempt) {
    const std::string name = stem + id + std::string(kSuffix);
    const Result<void> written = write_whole(folder, name, text, false, step);
    if (written) return folder / name;
    if (written.error().code != Errc::already_exists || attempt == 8) return written.error();
    id = random_id(kShortId);
  }
}

namespace {

// Makes a file in `folder` and removes it; returns 0 or the errno of the step that failed. Missing folders
// are made below a unique name: another process that checks or writes must not find a folder that is removed
// again. `made` gets the folders that were made, the outermost first; the caller removes them.
int make_file_in(const fs::path& folder, std::vector<fs::path>& made) {
  std::error_code code;
  fs::path at = folder;
  while (!fs::exists(fs::symlink_status(at, code)) && at.has_relative_path()) at = at.parent_path();
  if (at != folder) {
    const fs::path missing = folder.lexically_relative(at);
    std::string own = (at / ".penstock-XXXXXX").string();
    if (::mkdtemp(own.data()) == nullptr) return errno;
    made.push_back(at = own);
    for (const fs::path& name : missing) {
      if (name.empty()) continue;  // after a slash at the end
      at /= name;
      if (::mkdir(at.c_str(), 0777) != 0) return errno;
      made.push_back(at);
    }
  }
  std::string file = (at / ".penstock-XXXXXX").string();
  const Fd fd(::mkstemp(file.data()));
  if (!fd) return errno;
  return ::unlink(file.c_str()) == 0 ? 0 : errno;
}

}  // namespace

Result<void> check_results_folder(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> made;
  const int failure = make_file_in(fs::absolute(folder, code).lexically_normal(), made);
  for (auto at = made.rbegin(); at != made.rend(); ++at) ::rmdir(at->c_str());
  if (failure == 0) return success();
  Error error = errno_error(failure, "cannot write records into", folder.string());
  error.what += " (--results DIR names another folder)";
  return error;
}

}  // namespace penstock
