// Threads: only one thread uses a WholeFile. Two WholeFiles of one process must not have the same path,
// because their temporary files would have the same name.
// Lock: none.
// Memory: paths, the stream and errors allocate.
// Ctrl-C: publish() checks for a signal before the rename. After a signal it fails, and an existing file
// remains unchanged.
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

Error WholeFile::write_error(int sys_errno) const {
  return errno_error(sys_errno, "cannot write " + purpose_, path_);
}

Result<WholeFile> WholeFile::create(const std::string& path, std::string_view what) {
  WholeFile file;
  file.path_ = path;
  file.purpose_ = what;
  const fs::path target_path(path);
  const fs::path folder = target_path.has_parent_path() ? target_path.parent_path() : fs::path(".");
  std::error_code ignored;
  if (!target_path.has_filename() || fs::is_directory(target_path, ignored))
    return make_error(Errc::invalid_argument, "cannot write {}: '{}' is not a file name", what, path);
  if (!fs::is_directory(folder, ignored))
    return make_error(Errc::invalid_argument,
                      "cannot write {} '{}': folder '{}' does not exist; create it first", what, path,
                      folder.string());
  const fs::file_status existing = fs::status(target_path, ignored);
  // A pipe or device cannot be replaced by a rename, so it is written directly.
  const bool is_plain_file = !fs::exists(existing) || fs::is_regular_file(existing);
  std::string written_path = path;
  int flags = O_WRONLY | O_CLOEXEC;
  if (is_plain_file) {
    written_path = (folder / fmt::format(".{}.{}.tmp", target_path.filename().string(), ::getpid())).string();
    // O_NOFOLLOW: another user's link with the temporary name is not followed.
    flags |= O_CREAT | O_TRUNC | O_NOFOLLOW;
  }
  Fd fd(retry_eintr([&] { return ::open(written_path.c_str(), flags, 0666); }));
  if (!fd) return file.write_error(errno);
  if (is_plain_file) file.temporary_ = written_path;
  file.file_.reset(::fdopen(fd.get(), "w"));
  if (!file.file_) return file.write_error(ENOMEM);
  static_cast<void>(fd.release());
  return file;
}

WholeFile::~WholeFile() {
  file_.reset();
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> WholeFile::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) return write_error(errno);
  return success();
}

Result<void> WholeFile::publish() {
  // A full disk may be reported only when the file is closed. So the file is closed before the rename, and
  // after an error the old file remains.
  if (std::fclose(file_.release()) != 0) return write_error(errno);
  if (temporary_.empty()) return success();
  PENSTOCK_TRY(check_interrupt());
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return write_error(errno);
  temporary_.clear();
  return success();
}

Result<void> write_whole_file(const std::string& path, std::string_view what, std::string_view text) {
  PENSTOCK_ASSIGN(WholeFile file, WholeFile::create(path, what));
  PENSTOCK_TRY(file.write(text));
  return file.publish();
}

}  // namespace penstock
