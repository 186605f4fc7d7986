// Threads: one thread uses a WholeFile. Two WholeFiles of one process must not have the same path, because
// their temporary files would have the same name.
// Lock: none.
// Memory: paths, the stream and errors allocate.
// Ctrl-C: publish() checks for it before the rename, and then an existing file stays.
// Crash: a kill leaves the existing file and perhaps a temporary file. Nothing is synced, so a power cut may
// lose the new file.
#include "io_backends/core/system/whole_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {

namespace fs = std::filesystem;

Error WholeFile::failed(int sys_errno) const {
  return errno_error(sys_errno, "cannot write " + what_, path_);
}

Result<WholeFile> WholeFile::create(const std::string& path, std::string_view what) {
  WholeFile whole;
  whole.path_ = path;
  whole.what_ = what;
  const fs::path name(path);
  const fs::path folder = name.has_parent_path() ? name.parent_path() : fs::path(".");
  std::error_code none;
  if (!name.has_filename() || fs::is_directory(name, none))
    return make_error(Errc::invalid_argument, fmt::format("cannot write {}: '{}' names no file", what, path));
  if (!fs::is_directory(folder, none))
    return make_error(Errc::invalid_argument, fmt::format("cannot write {} '{}': there is no folder '{}'",
                                                          what, path, folder.string()));
  const fs::file_status there = fs::status(name, none);
  // A pipe or device cannot be replaced by a rename, so it is written directly.
  const bool plain = !fs::exists(there) || fs::is_regular_file(there);
  std::string target = path;
  int flags = O_WRONLY | O_CLOEXEC;
  if (plain) {
    target = (folder / fmt::format(".{}.{}.tmp", name.filename().string(), ::getpid())).string();
    // O_NOFOLLOW: another user's link with the temporary name is not followed.
    flags |= O_CREAT | O_TRUNC | O_NOFOLLOW;
  }
  Fd fd(retry_eintr([&] { return ::open(target.c_str(), flags, 0666); }));
  if (!fd) return whole.failed(errno);
  if (plain) whole.temporary_ = target;
  whole.file_.reset(::fdopen(fd.get(), "w"));
  if (!whole.file_) return whole.failed(ENOMEM);
  static_cast<void>(fd.release());
  return whole;
}

WholeFile::~WholeFile() {
  file_.reset();
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> WholeFile::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) return failed(errno);
  return success();
}

Result<void> WholeFile::publish() {
  // Close before the rename: a full disk may be reported only here, and the old file must then stay.
  if (std::fclose(file_.release()) != 0) return failed(errno);
  if (temporary_.empty()) return success();
  PENSTOCK_TRY(check_interrupt());
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed(errno);
  temporary_.clear();
  return success();
}

Result<void> write_whole_file(const std::string& path, std::string_view what, std::string_view text) {
  PENSTOCK_ASSIGN(WholeFile file, WholeFile::create(path, what));
  PENSTOCK_TRY(file.write(text));
  return file.publish();
}

}  // namespace penstock
