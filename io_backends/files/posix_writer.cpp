// Threads: one thread at a time uses a PosixWriter. All writers of a back end share PosixWriting, whose two
// flags are hints: a thread that reads an old value makes one more system call. No lock is held here.
// Memory: a writer with direct I/O allocates its stage of 1 MiB in begin(). Appending allocates nothing.
// Ctrl-C: nothing looks for a signal, and EINTR is tried again. A publish() that has started goes to its end.
// The caller looks between appends, and then destroys the writer, which removes the object.
// Crash: until give_name() the object has no name, or one with kTemporaryPrefix that no list shows. After it
// the object has its name and all of its bytes. publish() explains what a power cut may take.
#include "io_backends/files/posix_writer.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/files/direct_io.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kReserveFrom = 1U << 20U;
constexpr std::size_t kDirectBlock = 1U << 20U;
constexpr std::size_t kPiecesAtOnce = 256;
constexpr std::uint64_t kLeavesBy = 16U << 20U;

// Time, process and count: in practice unique among the processes and hosts that share the folder. Any
// thread.
std::string temporary_name(std::string_view object) {
  static std::atomic<std::uint64_t> count{0};
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::string name(parent_of(object));
  if (!name.empty()) name += '/';
  return name.append(kTemporaryPrefix)
      .append(std::to_string(now.tv_sec) + "-" + std::to_string(now.tv_nsec) + "-" +
              std::to_string(::getpid()) + "-" + std::to_string(count.fetch_add(1)));
}

bool lacks_nameless(int sys_errno) {
  return sys_errno == EOPNOTSUPP || sys_errno == EISDIR || sys_errno == EINVAL || sys_errno == ENOSYS;
}

class PosixWriter final : public Writer {
 public:
  PosixWriter(PosixWriting& writing, std::string_view name) : writing_(writing), name_(name) {}
  ~PosixWriter() override { discard(); }

  Result<void> begin(std::uint64_t bytes_hint);
  Result<void> append(std::span<const std::byte> bytes) override;
  Result<void> append(std::span<const std::span<const std::byte>> pieces) override;
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override;
  Result<void> publish(Durability wanted, IfExists if_exists) override;

 private:
  Result<void> open_file();
  Result<void> open_file(bool direct);
  Result<void> usable() const;
  Result<void> finish_bytes(Durability wanted);
  Result<void> give_name(IfExists if_exists);
  Result<void> link_nameless(const std::string& to);
  Result<void> rename_over(const std::string& from);
  Result<void> rename_new(const std::string& from);
  FullIo write_some(std::uint64_t offset, std::span<const std::byte> bytes);
  Result<void> write_all(std::uint64_t offset, std::span<const std::byte> bytes);
  Result<void> write_direct(std::uint64_t offset, std::span<const std::byte> bytes);
  std::size_t unstaged(std::span<const std::byte> bytes) const;
  Result<void> append_direct(std::span<const std::byte> bytes);
  Result<void> append_staged(std::span<const std::byte> bytes);
  Result<void> flush_stage();
  void send_on();
  void discard();

  Error error(int sys_errno, std::string_view operation) const {
    return writing_.root.error(sys_errno, operation, name_);
  }
  Result<void> spend(Error failure) {
    spent_ = true;
    return failure;
  }

  PosixWriting& writing_;
  const std::string name_;
  int root_ = -1;
  Fd fd_;
  std::string temporary_;  // "" while nameless
  std::uint64_t position_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t sent_ = 0;  // bytes whose way to the device has started
  Buffer stage_;
  std::size_t staged_ = 0;
  bool direct_ = false;
  bool spent_ = false;
};

// Called by begin(). Turns direct I/O off for the whole back end, but only after a file could be opened
// without it: EINVAL may have other causes.
Result<void> PosixWriter::open_file() {
  const bool direct = writing_.direct.on();
  Result<void> opened = open_file(direct);
  if (opened || !direct || opened.error().sys_errno != EINVAL) return opened;
  if (!writing_.direct.may_leave()) return no_direct_io(writing_.root.full(name_));
  opened = open_file(false);
  if (opened) writing_.direct.leave();
  return opened;
}

Result<void> PosixWriter::open_file(bool direct) {
  direct_ = direct;
  const std::string_view parent = parent_of(name_);
  const int more = direct ? O_DIRECT : 0;
  if (writing_.nameless.load(std::memory_order_relaxed)) {
    auto opened = writing_.root.open(parent, O_TMPFILE | O_WRONLY | more, "cannot create a file in");
    if (opened) {
      fd_ = *std::move(opened);
      return success();
    }
    if (!lacks_nameless(opened.error().sys_errno)) return std::move(opened).error();
  }
  temporary_ = temporary_name(name_);
  auto opened = writing_.root.open(temporary_, O_CREAT | O_EXCL | O_WRONLY | more, "cannot create a file in");
  if (!opened) {
    const std::string refused = std::exchange(temporary_, {});
    const int failed = opened.error().sys_errno;
    // The kernel checks O_DIRECT after it has made the file, so the file exists although the open failed.
    if (const auto root = writing_.root.fd(); direct && failed == EINVAL && root.ok())
      ::unlinkat(*root, SystemName(refused).get(), 0);
    return error(failed, "cannot create");
  }
  // Only now is it known that the file system lacks nameless files: EINVAL above may have been about
  // O_DIRECT.
  writing_.nameless.store(false, std::memory_order_relaxed);
  fd_ = *std::move(opened);
  return success();
}

// On the thread that calls Backend::create(). After an error the caller destroys the writer.
Result<void> PosixWriter::begin(std::uint64_t bytes_hint) {
  auto opened = open_file();
  if (!opened && (opened.error().sys_errno == ENOENT || writing_.root.gone())) {
    PENSTOCK_TRY(writing_.root.make_folders(parent_of(name_)));
    opened = open_file();
  }
  PENSTOCK_TRY(std::move(opened));
  // After make_folders(), which may have replaced the root's descriptor. PosixRoot keeps this one open.
  PENSTOCK_ASSIGN(root_, writing_.root.fd());
  if (direct_) stage_.grow(kDirectBlock);
  if (bytes_hint < kReserveFrom) return success();
  struct statfs system {};
  if (::fstatfs(fd_.get(), &system) != 0 || system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)
    return success();
  if (bytes_hint > static_cast<std::uint64_t>(INT64_MAX)) return error(EFBIG, "cannot reserve space for");
  const auto length = static_cast<off_t>(bytes_hint);
  if (retry_eintr([&] { return ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, length); }) == 0) {
    reserved_ = bytes_hint;
  } else if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
    return error(errno, "cannot reserve space for");
  }
  return success();
}

Result<void> PosixWriter::usable() const {
  if (!spent_) return success();
  return make_error(Errc::invalid_argument,
                    "the writer of '" + writing_.root.full(name_) + "' has failed or published before");
}

// Also counts the bytes of a write that failed half-way: write_direct() goes on after them.
FullIo PosixWriter::write_some(std::uint64_t offset, std::span<const std::byte> bytes) {
  const FullIo io = full_io(bytes.size(), [&](std::size_t done) {
    return ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
  });
  writing_.moved.add_written(io.done);
  end_ = std::max(end_, offset + io.done);
  return io;
}

Result<void> PosixWriter::write_all(std::uint64_t offset, std::span<const std::byte> bytes) {
  const FullIo io = write_some(offset, bytes);
  if (io.done == bytes.size()) return success();
  return spend(error(io.sys_errno != 0 ? io.sys_errno : EIO, "cannot write"));
}

// Unaligned bytes go through the page cache. So does the rest of a write that the kernel cut between blocks
// (at a limit or the end of the device): the buffered write then returns the reason. Only this thread uses
// the descriptor, so no other write runs while its flags differ.
Result<void> PosixWriter::write_direct(std::uint64_t offset, std::span<const std::byte> bytes) {
  // NOLINTNEXTLINE(*-reinterpret-cast)
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  if ((offset | bytes.size() | address) % kBufferAlignment == 0) {
    const FullIo io = write_some(offset, bytes);
    if (io.done == bytes.size()) return success();
    if (io.sys_errno != EINVAL) return spend(error(io.sys_errno != 0 ? io.sys_errno : EIO, "cannot write"));
    offset += io.done;
    bytes = bytes.subspan(io.done);
  }
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd_.get(), F_SETFL, flags & ~O_DIRECT) != 0)
    return spend(error(errno, "cannot leave direct mode of"));
  PENSTOCK_TRY(write_all(offset, bytes));
  if (::fcntl(fd_.get(), F_SETFL, flags) != 0) return spend(error(errno, "cannot enter direct mode of"));
  return success();
}

Result<void> PosixWriter::flush_stage() {
  if (staged_ == 0) return success();
  const std::size_t aligned = staged_ / kBufferAlignment * kBufferAlignment;
  const std::uint64_t from = position_ - staged_;
  if (aligned != 0) PENSTOCK_TRY(write_direct(from, stage_.first(aligned)));
  if (aligned != staged_) PENSTOCK_TRY(write_direct(from + aligned, stage_.first(staged_).subspan(aligned)));
  staged_ = 0;
  return success();
}

// How many of the bytes direct I/O can write without a copy. Fewer than a block are copied to the stage,
// since a call for each would cost more.
std::size_t PosixWriter::unstaged(std::span<const std::byte> bytes) const {
  // NOLINTNEXTLINE(*-reinterpret-cast)
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (staged_ != 0 || bytes.size() < kDirectBlock || (position_ | address) % kBufferAlignment != 0) return 0;
  return bytes.size() / kBufferAlignment * kBufferAlignment;
}

Result<void> PosixWriter::append_direct(std::span<const std::byte> bytes) {
  const std::size_t straight = unstaged(bytes);
  if (straight != 0) PENSTOCK_TRY(write_direct(position_, bytes.first(straight)));
  position_ += straight;
  return append_staged(bytes.subspan(straight));
}

Result<void> PosixWriter::append_staged(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kDirectBlock - staged_);
    std::memcpy(stage_.data() + staged_, bytes.data(), count);
    staged_ += count;
    position_ += count;
    bytes = bytes.subspan(count);
    if (staged_ == kDirectBlock) PENSTOCK_TRY(flush_stage());
  }
  return success();
}

// Starts the write-back of a large object while it is being written. So the device does not idle until the
// sync, and does not get all bytes at once then. No promise: an error shows in the sync of finish_bytes().
void PosixWriter::send_on() {
  if (position_ - sent_ < kLeavesBy) return;
  static_cast<void>(::sync_file_range(fd_.get(), static_cast<off_t>(sent_),
                                      static_cast<off_t>(position_ - sent_), SYNC_FILE_RANGE_WRITE));
  sent_ = position_;
}

Result<void> PosixWriter::append(std::span<const std::byte> bytes) {
  PENSTOCK_TRY(usable());
  if (direct_) return append_direct(bytes);
  PENSTOCK_TRY(write_all(position_, bytes));
  position_ += bytes.size();
  send_on();
  return success();
}

Result<void> PosixWriter::append(std::span<const std::span<const std::byte>> pieces) {
  PENSTOCK_TRY(usable());
  if (direct_) return Writer::append(pieces);
  while (!pieces.empty()) {
    std::array<struct iovec, kPiecesAtOnce> parts;
    const std::size_t count = std::min(pieces.size(), parts.size());
    for (std::size_t i = 0; i < count; ++i) {
      // writev only reads from its pieces, but its type does not say so.
      parts[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};  // NOLINT(*-const-cast)
    }
    const ssize_t moved = retry_eintr([&] {
      return ::pwritev(fd_.get(), parts.data(), static_cast<int>(count), static_cast<off_t>(position_));
    });
    if (moved < 0) return spend(error(errno, "cannot write"));
    auto written = static_cast<std::size_t>(moved);
    writing_.moved.add_written(written);
    position_ += written;
    end_ = std::max(end_, position_);
    // A short write: the rest goes piece by piece, in order.
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t skip = std::min(written, pieces[i].size());
      written -= skip;
      if (skip < pieces[i].size()) PENSTOCK_TRY(append(pieces[i].subspan(skip)));
    }
    pieces = pieces.subspan(count);
    send_on();
  }
  return success();
}

Result<void> PosixWriter::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  PENSTOCK_TRY(usable());
  if (!direct_) return write_all(offset, bytes);
  PENSTOCK_TRY(flush_stage());
  return write_direct(offset, bytes);
}

// Everything that can fail for the bytes, before the object has a name. The order matters: the stage is part
// of the bytes, the truncation of the metadata that the sync writes, and the close reports what is left.
Result<void> PosixWriter::finish_bytes(Durability wanted) {
  PENSTOCK_TRY(flush_stage());
  end_ = std::max(end_, position_);
  if (reserved_ > end_ && ::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0)
    return error(errno, "cannot give back the space reserved for");
  // An error shows in the later sync of whoever asked for `leaving`.
  if (wanted == Durability::leaving)
    static_cast<void>(::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE));
  // fdatasync also writes the length, which is all the metadata that a reader needs.
  if (syncs(wanted) && retry_eintr([&] { return ::fdatasync(fd_.get()); }) != 0)
    return error(errno, "cannot sync");
  // Network file systems report failed writes when a descriptor is closed. A copy is closed, since
  // give_name() still needs fd_.
  Fd twin(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!twin) return error(errno, "cannot close");
  if (const int failed = twin.close(); failed != 0) return error(failed, "cannot close");
  return success();
}

Result<void> PosixWriter::link_nameless(const std::string& to) {
  const SystemName target(to);
  if (writing_.link_by_descriptor.load(std::memory_order_relaxed)) {
    if (::linkat(fd_.get(), "", root_, target.get(), AT_EMPTY_PATH) == 0) return success();
    if (errno != ENOENT) return error(errno, "cannot publish");
  }
  // Before Linux 6.10 the link above needs CAP_DAC_READ_SEARCH. This one needs /proc and one more
  // microsecond.
  const std::string self = "/proc/self/fd/" + std::to_string(fd_.get());
  if (::linkat(AT_FDCWD, self.c_str(), root_, target.get(), AT_SYMLINK_FOLLOW) != 0)
    return error(errno, "cannot publish");
  writing_.link_by_descriptor.store(false, std::memory_order_relaxed);
  return success();
}

Result<void> PosixWriter::rename_over(const std::string& from) {
  if (::renameat(root_, SystemName(from).get(), root_, SystemName(name_).get()) == 0) return success();
  return error(errno, "cannot publish");
}

Result<void> PosixWriter::rename_new(const std::string& from) {
  const SystemName source(from);
  const SystemName target(name_);
  if (::renameat2(root_, source.get(), root_, target.get(), RENAME_NOREPLACE) == 0) return success();
  if (errno != EINVAL && errno != ENOSYS) return error(errno, "cannot publish");
  // File systems without RENAME_NOREPLACE (NFS): a hard link, too, is made only if the name is free. The link
  // comes first. A crash between both leaves the temporary name as well, never none.
  if (::linkat(root_, source.get(), root_, target.get(), 0) != 0) return error(errno, "cannot publish");
  ::unlinkat(root_, source.get(), 0);
  return success();
}

// The moment at which readers see the object, in one atomic system call. A crash before it leaves what was
// there under this name.
Result<void> PosixWriter::give_name(IfExists if_exists) {
  if (temporary_.empty()) {
    auto linked = link_nameless(name_);
    if (linked || linked.error().sys_errno != EEXIST || if_exists == IfExists::fail) return linked;
    // A link cannot replace. So the object gets a temporary name, and a rename replaces. temporary_ is set
    // after the link and cleared after the rename: between them discard() has a file to remove.
    const std::string bridge = temporary_name(name_);
    PENSTOCK_TRY(link_nameless(bridge));
    temporary_ = bridge;
  }
  PENSTOCK_TRY(if_exists == IfExists::replace ? rename_over(temporary_) : rename_new(temporary_));
  temporary_.clear();
  return success();
}

// Bytes, then name, then folders. With the name first, a power cut could leave a name without its bytes;
// with the folders first, their sync would not include the name. Only Durability::file and above sync the
// bytes: below it a power cut may take them although the name stays.
Result<void> PosixWriter::publish(Durability wanted, IfExists if_exists) {
  PENSTOCK_TRY(usable());
  spent_ = true;
  Result<void> done = finish_bytes(wanted);
  if (done) done = give_name(if_exists);
  discard();
  if (done && wanted == Durability::file_and_name) done = writing_.root.sync_folders_above(name_);
  return done;
}

// By publish() and the destructor; harmless when called again. After a successful publish() nothing is left
// to remove: temporary_ is empty, and a nameless file without a link ends with its descriptor.
void PosixWriter::discard() {
  if (!temporary_.empty()) ::unlinkat(root_, SystemName(temporary_).get(), 0);
  temporary_.clear();
  fd_.close();
  spent_ = true;
}

}  // namespace

Result<std::unique_ptr<Writer>> create_posix_object(PosixWriting& writing, std::string_view name,
                                                    std::uint64_t bytes_hint) {
  PENSTOCK_TRY(check_object_name(name));
  auto writer = std::make_unique<PosixWriter>(writing, name);
  PENSTOCK_TRY(writer->begin(bytes_hint));
  return std::unique_ptr<Writer>(std::move(writer));
}

}  // namespace penstock
