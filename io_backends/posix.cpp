// The back end `posix`: a folder of the operating system, read by plain system calls. This file also has the
// common part of all back ends over files. What direct=1 changes is in direct_files.cpp.
//
// Threads: any thread calls the back end and a PosixReader.
// Locks: mutex_ guards only remarks_. No lock is held during a system call.
// Memory: an open allocates the Reader and its name. A read allocates only for an error.
// Ctrl-C: it does not end a read early, because full_io() repeats a call after EINTR. The callers check
// interrupted() between reads.
// Crash: this file only reads. posix_writer.cpp writes.
#include "io_backends/posix.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/direct_files.hpp"
#include "io_backends/files/posix_names.hpp"
#include "io_backends/files/posix_writer.hpp"

namespace penstock {

extern const BackendInfo backend_posix;

FullIo pread_full(int fd, uint64_t offset, std::span<std::byte> out) {
  return full_io(out.size(), [&](size_t done) {
    return ::pread(fd, out.data() + done, out.size() - done, off_t(offset + done));
  });
}

Result<uint64_t> PosixReader::size() {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return errno_error(errno, "cannot inspect", name_);
  return uint64_t(status.st_size);
}

Result<void> PosixReader::read_at(uint64_t offset, std::span<std::byte> out) {
  if (offset > uint64_t(INT64_MAX)) return truncated_error(name_, offset, out.size());
  return check_read(pread_full(fd_.get(), offset, out), offset, out.size());
}

Result<void> PosixReader::check_read(const FullIo& io, uint64_t offset, uint64_t length) {
  moved_.add_read(io.done);
  if (io.done == length) return success();
  if (io.sys_errno != 0) return errno_error(io.sys_errno, "cannot read", name_);
  return truncated_error(name_, offset, length);
}

PosixFiles::PosixFiles(std::string_view path, const Options& options, int advice, bool eof_read)
    : root_(path), eof_read_(eof_read), advice_(advice), names_(posix_namespace(root_)) {
  caps_.write_at = true;
  caps_.native_path = true;
  caps_.atomic_rename = true;
  if (options.text("publish") != "auto") root_.use_nameless_files = false;
}

std::vector<std::string> PosixFiles::remarks() const {
  const std::lock_guard lock(mutex_);
  return remarks_;
}

void PosixFiles::remark(std::string sentence) {
  const std::lock_guard lock(mutex_);
  if (std::find(remarks_.begin(), remarks_.end(), sentence) == remarks_.end())
    remarks_.push_back(std::move(sentence));
}

Result<std::unique_ptr<Reader>> PosixFiles::open(std::string_view name) {
  PENSTOCK_ASSIGN(Fd fd, open_file(name));
  return std::make_unique<PosixReader>(std::move(fd), root_.full_path(name), moved_);
}

Result<std::unique_ptr<Writer>> PosixFiles::create(std::string_view name, uint64_t bytes_hint) {
  PENSTOCK_TRY(check_object_name(name));
  auto writer = std::make_unique<PosixWriter>(root_, moved_, name);
  PENSTOCK_TRY(writer->begin(bytes_hint));
  return writer;
}

Result<uint64_t> PosixFiles::read_object(std::string_view name, uint64_t length_hint,
                                         std::span<std::byte> out) {
  PENSTOCK_TRY(check_read_object(name, length_hint, out.size()));
  PENSTOCK_ASSIGN(const Fd fd, open_to_read(name));
  uint64_t length = length_hint;
  if (length == 0) {
    PENSTOCK_ASSIGN(length, object_length(fd.get(), name, out.size()));
  }
  // This reads by pread(), because read() locks the file position in a process with several threads.
  PENSTOCK_TRY(check_object_read(pread_full(fd.get(), 0, out.first(length)), name, length));
  if (eof_read_) {
    std::byte extra_byte{};
    const FullIo at_end = pread_full(fd.get(), length, {&extra_byte, 1});
    if (at_end.sys_errno != 0) return root_.error(at_end.sys_errno, "cannot read", name);
  }
  return length;
}

Result<uint64_t> PosixFiles::object_length(int fd, std::string_view name, size_t buffer_bytes) const {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return root_.error(errno, "cannot inspect", name);
  if (S_ISDIR(status.st_mode)) return root_.error(EISDIR, "cannot read", name);
  const auto length = uint64_t(status.st_size);
  PENSTOCK_TRY(check_fits(name, length, buffer_bytes));
  return length;
}

Result<void> PosixFiles::check_object_read(const FullIo& io, std::string_view name, uint64_t length) {
  moved_.add_read(io.done);
  if (io.sys_errno != 0) return root_.error(io.sys_errno, "cannot read", name);
  if (io.done != length) return truncated_error(root_.full_path(name), 0, length);
  return success();
}

std::optional<std::filesystem::path> PosixFiles::native_path(std::string_view name) const {
  return name.empty() ? root_.path() : root_.path() / name;
}

Result<Fd> PosixFiles::open_file(std::string_view name) {
  PENSTOCK_TRY(check_object_name(name));
  PENSTOCK_ASSIGN(Fd fd, open_to_read(name));
  PENSTOCK_TRY(mode_of(fd.get(), name));
  return fd;
}

Result<unsigned> PosixFiles::mode_of(int fd, std::string_view name) const {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return root_.error(errno, "cannot inspect", name);
  if (S_ISDIR(status.st_mode)) return root_.error(EISDIR, "cannot open", name);
  return unsigned{status.st_mode};
}

Result<Fd> PosixFiles::open_to_read(std::string_view name, int more_flags) {
  // Opens with O_NONBLOCK, because the open of a FIFO would block until another process opens it for writing.
  // On a regular file the flag matters only if another process has a lease on the file. Then the open fails,
  // and is repeated without the flag, so that it waits until the lease is released.
  const int flags = O_RDONLY | more_flags;
  auto fd = root_.open(name, flags | O_NONBLOCK, "cannot open");
  if (!fd && fd.error().sys_errno == EWOULDBLOCK) fd = root_.open(name, flags, "cannot open");
  if (fd.ok() && advice_ != POSIX_FADV_NORMAL) ::posix_fadvise(fd->get(), 0, 0, advice_);
  return fd;
}

Result<void> check_folder_given(std::string_view backend, std::string_view path) {
  if (!path.empty()) return success();
  return make_error(Errc::invalid_argument, "a " + std::string(backend) + " tier needs a folder: " +
                                                std::string(backend) + ":/path/to/folder");
}

namespace {

constexpr OptionSpec kPosixOptions[] = {
    kDirectOption,
    kFallbackOption,
    kPublishOption,
    {.name = "eof_read",
     .role = OptionRole::work,
     .type = OptionType::boolean,
     .value = "0|1",
     .fallback = "0",
     .help = "read until a read returns 0 bytes, as TensorFlow does: one more call per whole object"},
    {.name = "readahead",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "normal|sequential|random|willneed",
     .fallback = "normal",
     .help = "access pattern passed to the kernel when an object is opened (posix_fadvise)"}};

int fadvise_constant(const std::string& readahead) {
  if (readahead == "sequential") return POSIX_FADV_SEQUENTIAL;
  if (readahead == "random") return POSIX_FADV_RANDOM;
  return readahead == "willneed" ? POSIX_FADV_WILLNEED : POSIX_FADV_NORMAL;
}

Result<std::unique_ptr<Backend>> make_posix(std::string_view path, const Options& options) {
  PENSTOCK_TRY(check_folder_given("posix", path));
  const int file_advice = fadvise_constant(options.text("readahead"));
  const bool eof_read = options.boolean("eof_read");
  if (options.boolean("direct")) return std::make_unique<DirectFiles>(path, options, file_advice, eof_read);
  return std::make_unique<PosixFiles>(path, options, file_advice, eof_read);
}

}  // namespace

const BackendInfo backend_posix{
    .name = "posix",
    .summary = "files in a folder, read with open, pread and close",
    .options = kPosixOptions,
    .make = make_posix,
};

}  // namespace penstock
