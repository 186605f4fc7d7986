// Back end: a folder of the operating system, by plain system calls.
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>

#include "io_backends/base/backend.hpp"
#include "io_backends/base/posix_names.hpp"
#include "io_backends/base/posix_read.hpp"
#include "io_backends/base/posix_root.hpp"
#include "io_backends/base/posix_writer.hpp"
#include "io_backends/base/sharded_counter.hpp"

namespace penstock {

extern const BackendInfo backend_posix;

namespace {

constexpr OptionSpec kOptions[] = {
    {.name = "direct",
     .type = OptionType::boolean,
     .value = "0|1",
     .fallback = "0",
     .help = "bypass the page cache (O_DIRECT)"},
    {.name = "publish",
     .type = OptionType::choice,
     .value = "auto|rename",
     .fallback = "auto",
     .help = "how a finished object gets its name: auto uses a nameless file where the system has them"},
};

class PosixReader final : public Reader {
 public:
  PosixReader(Fd fd, bool direct, std::string name, MovedCounter& moved)
      : fd_(std::move(fd)), direct_(direct), name_(std::move(name)), moved_(moved) {}

  Result<std::uint64_t> size() override {
    struct stat status {};
    if (::fstat(fd_.get(), &status) != 0) return errno_error(errno, "cannot look at", name_);
    return static_cast<std::uint64_t>(status.st_size);
  }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset > static_cast<std::uint64_t>(INT64_MAX)) return truncated_error(name_, offset, out.size());
    const FullIo io = direct_ ? pread_direct(fd_.get(), offset, out) : pread_full(fd_.get(), offset, out);
    moved_.add_read(io.done);
    if (io.done == out.size()) return success();
    if (io.sys_errno != 0) return errno_error(io.sys_errno, "cannot read", name_);
    return truncated_error(name_, offset, out.size());
  }

 private:
  const Fd fd_;
  const bool direct_;
  const std::string name_;
  MovedCounter& moved_;
};

class PosixBackend final : public Backend {
 public:
  PosixBackend(std::string_view path, const Options& options)
      : root_(path), names_(posix_namespace(root_)), direct_(options.boolean("direct")) {
    caps_.write_at = true;
    caps_.native_path = true;
    caps_.rename = true;
    caps_.bypasses_cache = direct_;
    writing_.direct = direct_;
    writing_.nameless = options.text("publish") == "auto";
  }

  const Caps& caps() const override { return caps_; }

  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    PENSTOCK_TRY(check_object_name(name));
    PENSTOCK_ASSIGN(Fd fd, open_to_read(name));
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return root_.error(errno, "cannot look at", name);
    if (S_ISDIR(status.st_mode)) return root_.error(EISDIR, "cannot open", name);
    return std::make_unique<PosixReader>(std::move(fd), direct_, root_.full(name), moved_);
  }

  Result<std::unique_ptr<Writer>> create(std::string_view name, std::uint64_t bytes_hint) override {
    return create_posix_object(writing_, name, bytes_hint);
  }

  Result<std::uint64_t> read_object(std::string_view name, std::uint64_t length_hint,
                                    std::span<std::byte> out) override {
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

  Namespace& names() override { return *names_; }
  MovedBytes moved_bytes() const override { return moved_.sum(); }
  std::optional<std::filesystem::path> native_path(std::string_view name) const override {
    return name.empty() ? root_.path() : root_.path() / name;
  }

 private:
  Result<Fd> open_to_read(std::string_view name) {
    // Without waiting: a FIFO in an object's place would keep us until somebody writes to it. On files it
    // does nothing, but for a lease that somebody has to give back first.
    const int flags = O_RDONLY | (direct_ ? O_DIRECT : 0);
    auto fd = root_.open(name, flags | O_NONBLOCK, "cannot open");
    if (!fd && fd.error().sys_errno == EWOULDBLOCK) fd = root_.open(name, flags, "cannot open");
    if (!fd && direct_ && fd.error().sys_errno == EINVAL)
      return make_error(Errc::unsupported, "the file system of '" + root_.full(name) +
                                               "' has no direct I/O; leave direct=1 out");
    return fd;
  }

  PosixRoot root_;
  const std::unique_ptr<Namespace> names_;
  const bool direct_;
  Caps caps_;
  MovedCounter moved_;
  PosixWriting writing_{root_, moved_};
};

Result<std::unique_ptr<Backend>> make_posix(std::string_view path, const Options& options) {
  if (path.empty())
    return make_error(Errc::invalid_argument, "a posix tier needs a folder: posix:/path/to/folder");
  return std::make_unique<PosixBackend>(path, options);
}

std::string test_path(const std::filesystem::path& scratch) {
  return (scratch / "posix").string();
}

}  // namespace

const BackendInfo backend_posix{
    .name = "posix",
    .summary = "files in a folder, by open, read and close",
    .options = kOptions,
    .make = make_posix,
    .test_path = test_path,
};

}  // namespace penstock
