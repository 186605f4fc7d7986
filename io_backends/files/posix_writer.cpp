// Threads: one thread at a time uses a PosixWriter. All writers of a back end share PosixWriting. Its two
// flags are hints: a thread that reads an old value only makes one more system call.
// Lock: none.
// Memory: a writer with direct I/O allocates stage_, a buffer of 1 MiB, in begin(). An append allocates
// nothing.
// Ctrl-C: not checked, and a call is repeated after EINTR. A publish() that has started runs to its end. The
// caller checks interrupted() between appends and then destroys the writer, which removes the unpublished
// object.
// Crash: before give_name() the object has no name, or a temporary one that lists skip. After it the object
// has its name and all its bytes. The comment at publish() explains what a power cut may remove.
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

// A name from time, process and a counter. In practice it is unique among all processes and hosts that share
// the folder. Any thread.
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
  std::string temporary_;  // "" if the file is nameless
  std::uint64_t position_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t sent_ = 0;  // bytes whose write-back to the device has been started
  Buffer stage_;
  std::size_t staged_ = 0;
  bool direct_ = false;
  bool spent_ = false;
};

// Called by begin(). If the file system refuses O_DIRECT, it turns direct I/O off for the whole back end. It
// does so only after an open without O_DIRECT succeeded, because EINVAL may have other causes.
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
  // Only this success proves that the file system lacks nameless files. The EINVAL of O_TMPFILE may have been
  // caused by O_DIRECT.
  writing_.nameless.store(false, std::memory_order_relaxed);
  fd_ = *std::move(opened);
  return success();
}

// Runs on the thread of Backend::create(). After an error the caller destroys the writer.
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

// Also counts the bytes of a write that failed part-way, because write_direct() continues after them.
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

// Unaligned bytes are written through the page cache. So is the rest of a write that the kernel cut between
// blocks, at a limit or at the end of the device. Then the buffered write returns the reason. Only this
// thread uses the descriptor, so no other write runs while O_DIRECT is off.
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

// The number of bytes that direct I/O can write without a copy. Fewer bytes than a block are copied to
// stage_, because one call for each append would cost more.
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

// Starts the write-back of a large object while it is being written. So the device is not idle until the
// sync, and the sync has less to write. Errors are ignored, because the sync of finish_bytes() reports them.
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
    // After a short write, the rest is written piece by piece, in order.
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

// Does everything with the bytes that can fail, before the object has a name. The order matters. First stage_
// is written, and the file is truncated. Then the sync makes both durable. At last the close reports
// remaining errors.
Result<void> PosixWriter::finish_bytes(Durability wanted) {
  PENSTOCK_TRY(flush_stage());
  end_ = std::max(end_, position_);
  if (reserved_ > end_ && ::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0)
    return error(errno, "cannot give back the space reserved for");
  // Errors are ignored. The later sync of the caller that requested `leaving` reports them.
  if (wanted == Durability::leaving)
    static_cast<void>(::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE));
  // fdatasync also writes the length, which is all the metadata that a reader needs.
  if (syncs(wanted) && retry_eintr([&] { return ::fdatasync(fd_.get()); }) != 0)
    return error(errno, "cannot sync");
  // Network file systems report failed writes when a descriptor is closed. So a copy of fd_ is closed. fd_
  // itself is still needed by give_name().
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
  // Before Linux 6.10 the link by descriptor needs CAP_DAC_READ_SEARCH. This link needs /proc, and takes one
  // microsecond more.
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
  // For file systems without RENAME_NOREPLACE (NFS). A hard link also succeeds only if the name is free. The
  // link comes before the unlink. A crash between them leaves both names, never none.
  if (::linkat(root_, source.get(), root_, target.get(), 0) != 0) return error(errno, "cannot publish");
  ::unlinkat(root_, source.get(), 0);
  return success();
}

// Gives the object its name in one atomic system call. From then on readers see it. A crash before that
// leaves the old object of this name.
Result<void> PosixWriter::give_name(IfExists if_exists) {
  if (temporary_.empty()) {
    auto linked = link_nameless(name_);
    if (linked || linked.error().sys_errno != EEXIST || if_exists == IfExists::fail) return linked;
    // A link cannot replace an object. So the object gets a temporary name by a link, and a rename replaces
    // the old object. temporary_ is set after the link and cleared after the rename, because between them
    // discard() must remove that name.
    const std::string bridge = temporary_name(name_);
    PENSTOCK_TRY(link_nameless(bridge));
    temporary_ = bridge;
  }
  PENSTOCK_TRY(if_exists == IfExists::replace ? rename_over(temporary_) : rename_new(temporary_));
  temporary_.clear();
  return success();
}

// The order is: sync the bytes, give the name, sync the folders. If the name came first, a power cut could
// leave a name without its bytes. If the folders came first, their sync would not include the name. Only
// Durability::file and stronger ones sync the bytes. With weaker ones a power cut may remove the bytes
// although the name stays.
Result<void> PosixWriter::publish(Durability wanted, IfExists if_exists) {
  PENSTOCK_TRY(usable());
  spent_ = true;
  Result<void> done = finish_bytes(wanted);
  if (done) done = give_name(if_exists);
  discard();
  if (done && wanted == Durability::file_and_name) done = writing_.root.sync_folders_above(name_);
  return done;
}

// Called by publish() and the destructor, possibly twice. Removes an unpublished file. After a successful
// publish() it removes nothing, because temporary_ is empty. A nameless file without a link is removed by the
// system when its descriptor is closed.
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
