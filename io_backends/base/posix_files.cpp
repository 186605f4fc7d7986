#include "io_backends/base/posix_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "io_backends/base/posix_names.hpp"
#include "io_backends/base/posix_read.hpp"

namespace penstock {

Result<std::uint64_t> PosixReader::size() {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return errno_error(errno, "cannot look at", name_);
  return static_cast<std::uint64_t>(status.st_size);
}

Result<void> PosixReader::read_at(std::uint64_t offset, std::span<std::byte> out) {
  if (offset > static_cast<std::uint64_t>(INT64_MAX)) return truncated_error(name_, offset, out.size());
  const FullIo io = direct_ ? pread_direct(fd_.get(), offset, out) : pread_full(fd_.get(), offset, out);
  moved_.add_read(io.done);
  if (io.done == out.size()) return success();
  if (io.sys_errno != 0) return errno_error(io.sys_errno, "cannot read", name_);
  return truncated_error(name_, offset, out.size());
}

PosixFiles::PosixFiles(std::string_view path, const Options& options)
    : root_(path), direct_(options.boolean("direct")), names_(posix_namespace(root_)) {
  caps_.write_at = true;
  caps_.native_path = true;
  caps_.rename = true;
  caps_.bypasses_cache = direct_;
  writing_.direct = direct_;
  writing_.nameless = options.text("publish") == "auto";
}

Result<std::unique_ptr<Reader>> PosixFiles::open(std::string_view name) {
  PENSTOCK_ASSIGN(Fd fd, open_file(name));
  return std::make_unique<PosixReader>(std::move(fd), direct_, root_.full(name), moved_);
}

Result<std::unique_ptr<Writer>> PosixFiles::create(std::string_view name, std::uint64_t bytes_hint) {
  return create_posix_object(writing_, name, bytes_hint);
}

Result<std::uint64_t> PosixFiles::read_object(std::string_view name, std::uint64_t length_hint,
                                              std::span<std::byte> out) {
  PENSTOCK_TRY(check_read_object(name, length_hint, out.size()));
  PENSTOCK_ASSIGN(Fd fd, open_to_read(name));
  std::uint64_t length = length_hint;
  if (length == 0) {
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return root_.error(errno, "cannot look at", name);
    if (S_ISDIR(status.st_mode)) return root_.error(EISDIR, "cannot read", name);
    length = static_cast<std::uint64_t>(status.st_size);
    PENSTOCK_TRY(check_fits(name, length, out.size()));
  }
  // Not read(2): in a process of several threads that takes a lock for the file's position.
  const FullIo io =
      direct_ ? pread_direct(fd.get(), 0, out.first(length)) : pread_full(fd.get(), 0, out.first(length));
  moved_.add_read(io.done);
  if (io.sys_errno != 0) return root_.error(io.sys_errno, "cannot read", name);
  if (io.done != length) return truncated_error(root_.full(name), 0, length);
  return length;
}

std::optional<std::filesystem::path> PosixFiles::native_path(std::string_view name) const {
  return name.empty() ? root_.path() : root_.path() / name;
}

Result<Fd> PosixFiles::open_file(std::string_view name) {
  PENSTOCK_TRY(check_object_name(name));
  PENSTOCK_ASSIGN(Fd fd, open_to_read(name));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return root_.error(errno, "cannot look at", name);
  if (S_ISDIR(status.st_mode)) return root_.error(EISDIR, "cannot open", name);
  return fd;
}

Result<Fd> PosixFiles::open_to_read(std::string_view name) {
  // Without waiting: a FIFO in an object's place would keep us until somebody writes to it. On files it
  // does nothing, but for a lease that somebody has to give back first.
  const int flags = O_RDONLY | (direct_ ? O_DIRECT : 0);
  auto fd = root_.open(name, flags | O_NONBLOCK, "cannot open");
  if (!fd && fd.error().sys_errno == EWOULDBLOCK) fd = root_.open(name, flags, "cannot open");
  if (!fd && direct_ && fd.error().sys_errno == EINVAL) {
    // Folders have none either, and have errors of their own.
    if (auto folder = root_.open(name, O_RDONLY | O_DIRECTORY, "cannot open"); folder.ok()) return folder;
    return make_error(Errc::unsupported, "the file system of '" + root_.full(name) +
                                             "' has no direct I/O; leave direct=1 out");
  }
  return fd;
}

Result<void> check_folder_given(std::string_view backend, std::string_view path) {
    if (!path.empty()) return success();
    return make_error(Errc::invalid_argument, "a " + std::string(backend) + " tier needs a folder: " +
                                                  std::string(backend) + ":/path/to/folder");
  }

}  // namespace penstock
