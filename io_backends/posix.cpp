// The back end `posix`: a folder of the operating system, read by plain system calls. This file also has the
// common part of all back ends over files.
//
// Threads: any thread calls the back end and a PosixReader. The thread of a queue calls finish_read().
// Locks: mutex_ guards only remarks_. No lock is held during a system call. The atomics direct_ (whether
// files are opened with O_DIRECT) and alignment_ (for direct reads) change at most a few times.
// Memory: an open allocates the Reader and its name. A read allocates only for an error, and once in each
// thread for the aligned buffer of direct reads.
// Ctrl-C: reads are not cut short, because full_io() repeats a call after EINTR. The callers check
// interrupted() between reads.
// Crash: nothing here writes; see posix_writer.cpp.
#include "io_backends/posix.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/files/posix_names.hpp"

namespace penstock {

extern const BackendInfo backend_posix;

namespace {

std::string through_the_cache(const PosixRoot& root) {
  return "the file system of '" + root.full("") +
         "' has no direct I/O: reads and writes go through the page cache (fallback=buffered)";
}

FullIo pread_full(int fd, std::uint64_t offset, std::span<std::byte> out) {
  return full_io(out.size(), [&](std::size_t done) {
    return ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
  });
}

// Reads directly or through the page cache, as the descriptor was opened.
FullIo pread_whole(int fd, const std::optional<DirectAlignment>& direct, std::uint64_t offset,
                   std::span<std::byte> out) {
  return direct ? pread_direct(fd, *direct, offset, out) : pread_full(fd, offset, out);
}

}  // namespace

PosixSettings posix_settings(const Options& options) {
  return {.direct = options.boolean("direct"),
          .fallback_to_buffered = options.text("fallback") == "buffered",
          .nameless = options.text("publish") == "auto"};
}

Result<std::uint64_t> PosixReader::size() {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return errno_error(errno, "cannot look at", name_);
  return static_cast<std::uint64_t>(status.st_size);
}

Result<void> PosixReader::read_at(std::uint64_t offset, std::span<std::byte> out) {
  if (offset > static_cast<std::uint64_t>(INT64_MAX)) return truncated_error(name_, offset, out.size());
  const FullIo io = pread_whole(fd_.get(), direct_, offset, out);
  moved_.add_read(io.done);
  if (io.done == out.size()) return success();
  if (io.sys_errno != 0) return errno_error(io.sys_errno, "cannot read", name_);
  return truncated_error(name_, offset, out.size());
}

PosixFiles::PosixFiles(std::string_view path, const PosixSettings& settings)
    : root_(path),
      direct_(settings.direct && !(settings.fallback_to_buffered && lacks_direct_io(root_.path())),
              settings.fallback_to_buffered),
      eof_read_(settings.eof_read),
      advice_(settings.advice),
      names_(posix_namespace(root_)) {
  caps_.write_at = true;
  caps_.native_path = true;
  caps_.rename = true;
  caps_.bypasses_cache = direct_.on();
  writing_.nameless = settings.nameless;
  if (settings.direct && !direct_.on()) remark(through_the_cache(root_));
}

// Returns a reference without a lock. Neither caps_ nor buffered_caps_ changes after a caller can have a
// reference to it. call_once makes other threads wait until buffered_caps_ is complete.
const Caps& PosixFiles::caps() const {
  if (!direct_.left()) return caps_;
  std::call_once(left_direct_, [this] {
    buffered_caps_ = caps_;
    buffered_caps_.bypasses_cache = false;
    buffered_caps_.queue_of_one = false;
  });
  return buffered_caps_;
}

std::vector<std::string> PosixFiles::remarks() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all = remarks_;
  if (direct_.left()) all.push_back(through_the_cache(root_));
  return all;
}

void PosixFiles::remark(std::string sentence) {
  const std::lock_guard lock(mutex_);
  if (std::find(remarks_.begin(), remarks_.end(), sentence) == remarks_.end())
    remarks_.push_back(std::move(sentence));
}

Result<std::unique_ptr<Reader>> PosixFiles::open(std::string_view name) {
  PENSTOCK_ASSIGN(Fd fd, open_file(name));
  PENSTOCK_ASSIGN(const auto direct, ask_alignment(fd.get(), name));
  return std::make_unique<PosixReader>(std::move(fd), direct, root_.full(name), moved_);
}

// alignment(), likely_alignment() and ask_alignment() read alignment_ without a lock. Relaxed order is
// enough, because both numbers are in one atomic, which guards no other memory.
Result<std::optional<DirectAlignment>> PosixFiles::alignment(int fd, std::string_view name) {
  const DirectAlignment known = alignment_.load(std::memory_order_relaxed);
  return !direct_.on() || known.offset == 0 ? ask_alignment(fd, name) : std::optional(known);
}

std::optional<DirectAlignment> PosixFiles::likely_alignment() const {
  const DirectAlignment known = alignment_.load(std::memory_order_relaxed);
  if (!direct_.on()) return std::nullopt;
  return known.offset == 0 ? DirectAlignment{} : known;
}

Result<std::optional<DirectAlignment>> PosixFiles::ask_alignment(int fd, std::string_view name) {
  const auto wanted = direct_.on() ? direct_alignment(fd) : std::nullopt;
  if (!wanted) {
    if (direct_.on()) {
      if (!direct_.may_leave()) return no_direct_io(root_.full(name));
      direct_.leave();
    }
    // Another thread may have turned direct I/O off in this moment, while this descriptor was still opened
    // with it.
    if (direct_.left()) leave_direct_io(fd);
    return std::optional<DirectAlignment>();
  }
  // Two threads may store at the same time, and the larger value may be lost. That costs only one EINVAL,
  // after which read_object() and finish_read() ask again.
  const DirectAlignment known = alignment_.load(std::memory_order_relaxed);
  const DirectAlignment both{std::max(known.memory, wanted->memory), std::max(known.offset, wanted->offset)};
  alignment_.store(both, std::memory_order_relaxed);
  return std::optional(both);
}

// Called on the thread of the queue, after the kernel has finished with the operation's memory. So perform()
// may write to that memory again. perform() blocks.
Result<std::uint64_t> PosixFiles::finish_read(const Operation& operation, const Aim& aim, std::size_t bytes,
                                              std::int64_t got, std::string_view failed) {
  if (got < 0 && got != -EINTR && got != -EAGAIN && got != -EINVAL)
    return errno_error(static_cast<int>(-got), failed, full_name(operation));
  if (got < 0 || static_cast<std::uint64_t>(got) < aim.ahead + bytes) return perform(*this, operation);
  moved_.add_read(bytes);
  std::byte* const place = out_of(operation).data();
  if (aim.into != place) std::memcpy(place, aim.into + aim.ahead, bytes);
  return std::uint64_t{bytes};
}

std::string PosixFiles::full_name(const Operation& operation) const {
  if (const auto* const object = std::get_if<ReadObject>(&operation.what)) return root_.full(object->name);
  return static_cast<const PosixReader&>(*std::get<ReadAt>(operation.what).reader).name();
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
  PENSTOCK_ASSIGN(auto direct, alignment(fd.get(), name));
  // Uses pread, because read(2) takes a lock for the file position in a process with several threads.
  FullIo io = pread_whole(fd.get(), direct, 0, out.first(length));
  if (direct && io.sys_errno == EINVAL && io.done == 0) {  // perhaps another file system below the same root
    PENSTOCK_ASSIGN(direct, ask_alignment(fd.get(), name));
    io = pread_whole(fd.get(), direct, 0, out.first(length));
  }
  moved_.add_read(io.done);
  if (io.sys_errno != 0) return root_.error(io.sys_errno, "cannot read", name);
  if (io.done != length) return truncated_error(root_.full(name), 0, length);
  if (eof_read_) {
    std::byte none{};
    const FullIo end = pread_whole(fd.get(), direct, length, {&none, 1});
    if (end.sys_errno != 0) return root_.error(end.sys_errno, "cannot read", name);
  }
  return length;
}

std::optional<std::filesystem::path> PosixFiles::native_path(std::string_view name) const {
  return name.empty() ? root_.path() : root_.path() / name;
}

Result<Fd> PosixFiles::open_file(std::string_view name, unsigned* mode) {
  PENSTOCK_TRY(check_object_name(name));
  PENSTOCK_ASSIGN(Fd fd, open_to_read(name));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return root_.error(errno, "cannot look at", name);
  if (S_ISDIR(status.st_mode)) return root_.error(EISDIR, "cannot open", name);
  if (mode != nullptr) *mode = status.st_mode;
  return fd;
}

Result<Fd> PosixFiles::open_to_read(std::string_view name) {
  // With O_NONBLOCK, because the open of a FIFO would block until another process opens it for writing. On a
  // file O_NONBLOCK matters only if another process has a lease on it. Then the second open waits until that
  // lease is released.
  const auto open = [&](int flags) {
    auto fd = root_.open(name, flags | O_NONBLOCK, "cannot open");
    if (!fd && fd.error().sys_errno == EWOULDBLOCK) fd = root_.open(name, flags, "cannot open");
    return fd;
  };
  const bool direct = direct_.on();
  auto fd = open(O_RDONLY | (direct ? O_DIRECT : 0));
  if (!fd && direct && fd.error().sys_errno == EINVAL) {
    // The name may be a folder, for which O_DIRECT also fails with EINVAL. The caller must get the error for
    // a folder.
    if (auto folder = root_.open(name, O_RDONLY | O_DIRECTORY, "cannot open"); folder.ok()) return folder;
    if (!direct_.may_leave()) return no_direct_io(root_.full(name));
    fd = open(O_RDONLY);
    // Direct I/O is turned off only if the open without O_DIRECT succeeds. Else EINVAL had another cause.
    if (fd.ok()) direct_.leave();
  }
  if (fd.ok() && advice_ != POSIX_FADV_NORMAL) ::posix_fadvise(fd->get(), 0, 0, advice_);
  return fd;
}

Result<void> check_folder_given(std::string_view backend, std::string_view path) {
  if (!path.empty()) return success();
  return make_error(Errc::invalid_argument, "a " + std::string(backend) + " tier needs a folder: " +
                                                std::string(backend) + ":/path/to/folder");
}

namespace {

constexpr OptionSpec kOptions[] = {
    kDirectOption,
    kFallbackOption,
    kPublishOption,
    {.name = "eof_read",
     .role = OptionRole::work,
     .type = OptionType::boolean,
     .value = "0|1",
     .fallback = "0",
     .help = "read on until a read gives nothing, as TensorFlow does: one more call for each whole object"},
    {.name = "readahead",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "normal|sequential|random|willneed",
     .fallback = "normal",
     .help = "what the kernel is told of the reads to come when an object is opened (posix_fadvise)"}};

int advice(const std::string& readahead) {
  if (readahead == "sequential") return POSIX_FADV_SEQUENTIAL;
  if (readahead == "random") return POSIX_FADV_RANDOM;
  return readahead == "willneed" ? POSIX_FADV_WILLNEED : POSIX_FADV_NORMAL;
}

Result<std::unique_ptr<Backend>> make_posix(std::string_view path, const Options& options) {
  PENSTOCK_TRY(check_folder_given("posix", path));
  PosixSettings settings = posix_settings(options);
  settings.eof_read = options.boolean("eof_read");
  settings.advice = advice(options.text("readahead"));
  return std::make_unique<PosixFiles>(path, settings);
}

}  // namespace

const BackendInfo backend_posix{
    .name = "posix",
    .summary = "files in a folder, by open, read and close",
    .options = kOptions,
    .make = make_posix,
};

}  // namespace penstock
