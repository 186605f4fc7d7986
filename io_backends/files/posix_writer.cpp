// Threads: one thread at a time uses a PosixWriter. All writers of a back end share use_nameless_files and
// can_link_by_descriptor of PosixRoot. Both are only hints: a thread that reads an old value makes one more
// system call.
// Lock: none of its own. begin() may take the lock of PosixRoot, in fd() and make_folders().
// Memory: an append allocates only the text of an error.
// Ctrl-C: this file does not check for a signal. Opens, writes and syncs are repeated after EINTR. A
// publish() that has started runs to its end. The caller checks interrupted() between appends and then
// destroys the writer, which removes the unpublished object.
// Crash: before give_name() the object has no name, or a temporary name, which listings skip. After
// give_name() it has its name and all its bytes. The comment at publish() explains what a power cut may
// remove.
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

#include "io_backends/core/system/durable_file.hpp"

namespace penstock {
namespace {

constexpr uint64_t kReserveMinBytes = 1U << 20U;
constexpr size_t kPiecesAtOnce = 256;
constexpr uint64_t kWriteBackBytes = 16U << 20U;

// A name made of time, process id and a counter. In practice it is unique among all processes and hosts that
// share the folder. Any thread may call it.
std::string temporary_name(std::string_view object) {
  static std::atomic<uint64_t> count{0};
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::string name(parent_of(object));
  if (!name.empty()) name += '/';
  return name.append(kTemporaryPrefix)
      .append(std::to_string(now.tv_sec) + "-" + std::to_string(now.tv_nsec) + "-" +
              std::to_string(::getpid()) + "-" + std::to_string(count.fetch_add(1)));
}

bool means_no_nameless_files(int sys_errno) {
  return sys_errno == EOPNOTSUPP || sys_errno == EISDIR || sys_errno == EINVAL || sys_errno == ENOSYS;
}

}  // namespace

Result<void> PosixWriter::create_file(int more_flags) {
  const std::string_view parent = parent_of(name_);
  if (folder_.use_nameless_files.load(std::memory_order_relaxed)) {
    auto opened = folder_.open(parent, O_TMPFILE | O_WRONLY | more_flags, "cannot create a file in");
    if (opened) {
      fd_ = *std::move(opened);
      return success();
    }
    if (!means_no_nameless_files(opened.error().sys_errno)) return std::move(opened).error();
  }
  temporary_name_ = temporary_name(name_);
  auto opened =
      folder_.open(temporary_name_, O_CREAT | O_EXCL | O_WRONLY | more_flags, "cannot create a file in");
  if (!opened) {
    const std::string refused_name = std::exchange(temporary_name_, {});
    const int failed = opened.error().sys_errno;
    // The kernel checks O_DIRECT after it has made the file. So the file exists although the open failed, and
    // is removed here.
    if (const auto root = folder_.fd(); more_flags != 0 && failed == EINVAL && root.ok())
      ::unlinkat(*root, SystemName(refused_name).get(), 0);
    return error(failed, "cannot create");
  }
  // use_nameless_files is cleared only here, after a named file could be made. Before that, the EINVAL of
  // O_TMPFILE could have come from O_DIRECT.
  folder_.use_nameless_files.store(false, std::memory_order_relaxed);
  fd_ = *std::move(opened);
  return success();
}

// Makes the file of the object and reserves its space. Backend::create() calls it on the caller's thread.
// After an error the caller destroys the writer.
Result<void> PosixWriter::begin(uint64_t bytes_hint) {
  auto opened = open_file();
  if (!opened && (opened.error().sys_errno == ENOENT || folder_.is_removed())) {
    PENSTOCK_TRY(folder_.make_folders(parent_of(name_)));
    opened = open_file();
  }
  PENSTOCK_TRY(std::move(opened));
  // root_fd_ is set only here, because make_folders() above may have opened the root again. PosixRoot keeps
  // every descriptor open.
  PENSTOCK_ASSIGN(root_fd_, folder_.fd());
  if (bytes_hint < kReserveMinBytes) return success();
  struct statfs system {};
  if (::fstatfs(fd_.get(), &system) != 0 || system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)
    return success();
  if (bytes_hint > uint64_t(INT64_MAX)) return error(EFBIG, "cannot reserve space for");
  const auto length = off_t(bytes_hint);
  if (retry_eintr([&] { return ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, length); }) == 0) {
    reserved_bytes_ = bytes_hint;
  } else if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
    return error(errno, "cannot reserve space for");
  }
  return success();
}

Result<void> PosixWriter::check_unfinished() const {
  return finished_ ? Result<void>(finished_writer_error(folder_.full_path(name_))) : success();
}

// Writes `bytes`, and counts the bytes that were written. If the write fails after a part of them, that part
// is counted, because DirectWriter continues after it.
FullIo PosixWriter::write_some(uint64_t offset, std::span<const std::byte> bytes) {
  const FullIo io = full_io(bytes.size(), [&](size_t done) {
    return ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done, off_t(offset + done));
  });
  moved_.add_written(io.done);
  written_end_ = std::max(written_end_, offset + io.done);
  return io;
}

Result<void> PosixWriter::write_all(uint64_t offset, std::span<const std::byte> bytes) {
  const FullIo io = write_some(offset, bytes);
  if (io.done == bytes.size()) return success();
  return fail(error(io.sys_errno != 0 ? io.sys_errno : EIO, "cannot write"));
}

// Starts the write-back of a large object while it is being written. So the device already works before the
// sync, and the sync has less to write. Errors are ignored, because the sync of finish_bytes() reports them.
void PosixWriter::start_write_back() {
  if (position_ - write_back_end_ < kWriteBackBytes) return;
  static_cast<void>(::sync_file_range(fd_.get(), off_t(write_back_end_), off_t(position_ - write_back_end_),
                                      SYNC_FILE_RANGE_WRITE));
  write_back_end_ = position_;
}

Result<void> PosixWriter::append(std::span<const std::byte> bytes) {
  PENSTOCK_TRY(check_unfinished());
  PENSTOCK_TRY(write_all(position_, bytes));
  position_ += bytes.size();
  start_write_back();
  return success();
}

Result<void> PosixWriter::append(std::span<const std::span<const std::byte>> pieces) {
  PENSTOCK_TRY(check_unfinished());
  while (!pieces.empty()) {
    std::array<struct iovec, kPiecesAtOnce> parts;
    const size_t count = std::min(pieces.size(), parts.size());
    for (size_t i = 0; i < count; ++i) {
      // writev only reads these bytes, but its type iovec has no const.
      parts[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};  // NOLINT(*-const-cast)
    }
    const ssize_t moved =
        retry_eintr([&] { return ::pwritev(fd_.get(), parts.data(), int(count), off_t(position_)); });
    if (moved < 0) return fail(error(errno, "cannot write"));
    auto written = size_t(moved);
    moved_.add_written(written);
    position_ += written;
    written_end_ = std::max(written_end_, position_);
    // After a short write, the rest is written piece by piece, in order.
    for (size_t i = 0; i < count; ++i) {
      const size_t written_bytes = std::min(written, pieces[i].size());
      written -= written_bytes;
      if (written_bytes < pieces[i].size()) PENSTOCK_TRY(append(pieces[i].subspan(written_bytes)));
    }
    pieces = pieces.subspan(count);
    start_write_back();
  }
  return success();
}

Result<void> PosixWriter::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  PENSTOCK_TRY(check_unfinished());
  return write_all(offset, bytes);
}

// Finishes the file before the object gets its name, so that no error of its bytes can come later. The order
// matters. First the file is truncated to its length. Then the sync makes bytes and length durable. Finally a
// close reports the remaining errors.
Result<void> PosixWriter::finish_bytes(Durability wanted) {
  written_end_ = std::max(written_end_, position_);
  if (reserved_bytes_ > written_end_ && ::ftruncate(fd_.get(), off_t(written_end_)) != 0)
    return error(errno, "cannot release the space reserved for");
  // Errors of this call are ignored: a caller that passes Durability::leaving syncs later, and that sync
  // reports them.
  if (wanted == Durability::leaving)
    static_cast<void>(::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE));
  // fdatasync also writes the length, which is all the metadata that a reader needs.
  if (syncs(wanted) && retry_eintr([&] { return ::fdatasync(fd_.get()); }) != 0)
    return error(errno, "cannot sync");
  // Network file systems report failed writes when a descriptor is closed. So a copy of fd_ is closed. fd_
  // itself is still needed by give_name().
  Fd descriptor_copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!descriptor_copy) return error(errno, "cannot duplicate the descriptor of");
  if (const int failed = descriptor_copy.close(); failed != 0) return error(failed, "cannot close");
  return success();
}

Result<void> PosixWriter::link_nameless(const std::string& to) {
  const SystemName target(to);
  if (folder_.can_link_by_descriptor.load(std::memory_order_relaxed)) {
    if (::linkat(fd_.get(), "", root_fd_, target.get(), AT_EMPTY_PATH) == 0) return success();
    if (errno != ENOENT) return error(errno, "cannot publish");
  }
  // Before Linux 6.10 the link by descriptor above needs CAP_DAC_READ_SEARCH. The link by the path in /proc
  // needs no such right, but takes one microsecond more.
  const std::string proc_path = "/proc/self/fd/" + std::to_string(fd_.get());
  if (::linkat(AT_FDCWD, proc_path.c_str(), root_fd_, target.get(), AT_SYMLINK_FOLLOW) != 0)
    return error(errno, "cannot publish");
  folder_.can_link_by_descriptor.store(false, std::memory_order_relaxed);
  return success();
}

Result<void> PosixWriter::rename_and_replace(const std::string& from) {
  if (::renameat(root_fd_, SystemName(from).get(), root_fd_, SystemName(name_).get()) == 0) return success();
  return error(errno, "cannot publish");
}

Result<void> PosixWriter::rename_if_free(const std::string& from) {
  const int failed = rename_noreplace(root_fd_, SystemName(from).get(), SystemName(name_).get());
  return failed == 0 ? success() : Result<void>(error(failed, "cannot publish"));
}

// Gives the object its name in one atomic system call. From then on readers see it. After a crash before that
// call, the name still belongs to the old object, or to no object.
Result<void> PosixWriter::give_name(IfExists if_exists) {
  if (temporary_name_.empty()) {
    auto linked = link_nameless(name_);
    if (linked || linked.error().sys_errno != EEXIST || if_exists == IfExists::fail) return linked;
    // A link cannot replace an object. So a link gives the object a temporary name, and a rename then
    // replaces the old object. temporary_name_ is set after the link and cleared after the rename, because
    // between them discard() must remove the temporary name.
    const std::string temporary_link = temporary_name(name_);
    PENSTOCK_TRY(link_nameless(temporary_link));
    temporary_name_ = temporary_link;
  }
  PENSTOCK_TRY(if_exists == IfExists::replace ? rename_and_replace(temporary_name_)
                                              : rename_if_free(temporary_name_));
  temporary_name_.clear();
  return success();
}

// The order is: sync the bytes, give the name, sync the folders. If the name came first, a power cut could
// leave a name without its bytes. If the folders came first, their sync would not include the name. Only
// Durability::file and file_and_name sync the bytes. With the other levels, a power cut may remove the bytes
// of an object that has its name.
Result<void> PosixWriter::publish(Durability wanted, IfExists if_exists) {
  PENSTOCK_TRY(check_unfinished());
  finished_ = true;
  Result<void> done = finish_bytes(wanted);
  if (done) done = give_name(if_exists);
  discard();
  if (done && wanted == Durability::file_and_name) done = folder_.sync_folders_above(name_);
  return done;
}

// Removes the file of an unpublished object. publish() and the destructor call this, so it may run twice.
// After a successful publish() it removes nothing, because temporary_name_ is empty. A nameless file needs no
// removal: the system frees it when its descriptor is closed.
void PosixWriter::discard() {
  if (!temporary_name_.empty()) ::unlinkat(root_fd_, SystemName(temporary_name_).get(), 0);
  temporary_name_.clear();
  fd_.close();
  finished_ = true;
}

}  // namespace penstock
