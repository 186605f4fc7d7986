// Threads: one thread at a time uses a DirectWriter.
// Lock: none.
// Memory: open_file() allocates block_buffer_, a buffer of 1 MiB. An append allocates only the text of an
// error.
// Ctrl-C: this file does not check for a signal. Opens and writes are repeated after EINTR.
// Crash: an object that publish() has not named yet disappears or keeps a temporary name (posix_writer.cpp
// explains why).
#include "io_backends/files/direct_writer.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/files/posix_writer.hpp"

namespace penstock {
namespace {

constexpr size_t kDirectBlockBytes = 1U << 20U;

bool are_aligned_blocks(uint64_t offset, size_t bytes, const std::byte* memory) {
  // NOLINTNEXTLINE(*-reinterpret-cast)
  return (offset | bytes | reinterpret_cast<uintptr_t>(memory)) % kBufferAlignment == 0;
}

// A Writer that bypasses the page cache. If direct I/O is off after open_file(), it writes as a PosixWriter
// does.
class DirectWriter final : public PosixWriter {
 public:
  DirectWriter(PosixRoot& folder, MovedCounter& moved, DirectMode& mode, std::string_view name)
      : PosixWriter(folder, moved, name), mode_(mode) {}

  Result<void> append(std::span<const std::byte> bytes) override;
  Result<void> append(std::span<const std::span<const std::byte>> pieces) override;
  Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override;
  Result<void> publish(Durability wanted, IfExists if_exists) override;

 private:
  Result<void> open_file() override;
  Result<void> write_direct(uint64_t offset, std::span<const std::byte> bytes);
  size_t bytes_without_copy(std::span<const std::byte> bytes) const;
  Result<void> append_buffered(std::span<const std::byte> bytes);
  Result<void> flush_buffer();

  DirectMode& mode_;
  Buffer block_buffer_;
  size_t buffered_bytes_ = 0;
  bool is_direct_ = false;
};

// Makes the file of the object, with O_DIRECT if direct I/O is on. If the file system refuses O_DIRECT and
// DirectMode allows it, this turns direct I/O off for the whole back end. It does so only after an open
// without O_DIRECT has succeeded, because EINVAL may have another cause.
Result<void> DirectWriter::open_file() {
  is_direct_ = mode_.on();
  // The buffer is allocated before the file is made. So if there is no memory, no file remains in the folder.
  if (is_direct_) block_buffer_.grow(kDirectBlockBytes);
  Result<void> opened = create_file(is_direct_ ? O_DIRECT : 0);
  if (!opened && is_direct_ && opened.error().sys_errno == EINVAL) {
    if (!mode_.may_turn_off()) return no_direct_io(folder_.full_path(name_));
    is_direct_ = false;
    opened = create_file(0);
    if (opened) mode_.turn_off();
  }
  return opened;
}

// Writes aligned bytes directly. Writes other bytes through the page cache, and switches O_DIRECT off
// meanwhile. Only this thread uses the descriptor, so no other write runs while O_DIRECT is off. At a size
// limit or at the end of the device, the kernel may write only a part of aligned bytes. If it then refuses
// the rest as unaligned (EINVAL), the rest goes through the page cache, too. If that second write fails, its
// error shows why the first write was short.
Result<void> DirectWriter::write_direct(uint64_t offset, std::span<const std::byte> bytes) {
  if (are_aligned_blocks(offset, bytes.size(), bytes.data())) {
    const FullIo io = write_some(offset, bytes);
    if (io.done == bytes.size()) return success();
    if (io.sys_errno != EINVAL) return fail(error(io.sys_errno != 0 ? io.sys_errno : EIO, "cannot write"));
    offset += io.done;
    bytes = bytes.subspan(io.done);
  }
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd_.get(), F_SETFL, flags & ~O_DIRECT) != 0)
    return fail(error(errno, "cannot leave direct mode of"));
  PENSTOCK_TRY(write_all(offset, bytes));
  if (::fcntl(fd_.get(), F_SETFL, flags) != 0) return fail(error(errno, "cannot enter direct mode of"));
  return success();
}

Result<void> DirectWriter::flush_buffer() {
  if (buffered_bytes_ == 0) return success();
  const size_t aligned_bytes = buffered_bytes_ / kBufferAlignment * kBufferAlignment;
  const uint64_t offset = position_ - buffered_bytes_;
  if (aligned_bytes != 0) PENSTOCK_TRY(write_direct(offset, block_buffer_.first(aligned_bytes)));
  if (aligned_bytes != buffered_bytes_)
    PENSTOCK_TRY(
        write_direct(offset + aligned_bytes, block_buffer_.first(buffered_bytes_).subspan(aligned_bytes)));
  buffered_bytes_ = 0;
  return success();
}

// Returns how many of the appended bytes can be written directly, without a copy. Appends of less than
// kDirectBlockBytes are copied to block_buffer_, because a system call for each of them would cost more.
size_t DirectWriter::bytes_without_copy(std::span<const std::byte> bytes) const {
  if (buffered_bytes_ != 0 || bytes.size() < kDirectBlockBytes ||
      !are_aligned_blocks(position_, 0, bytes.data()))
    return 0;
  return bytes.size() / kBufferAlignment * kBufferAlignment;
}

Result<void> DirectWriter::append(std::span<const std::byte> bytes) {
  if (!is_direct_) return PosixWriter::append(bytes);
  PENSTOCK_TRY(check_unfinished());
  const size_t uncopied_bytes = bytes_without_copy(bytes);
  if (uncopied_bytes != 0) PENSTOCK_TRY(write_direct(position_, bytes.first(uncopied_bytes)));
  position_ += uncopied_bytes;
  return append_buffered(bytes.subspan(uncopied_bytes));
}

Result<void> DirectWriter::append_buffered(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kDirectBlockBytes - buffered_bytes_);
    std::memcpy(block_buffer_.data() + buffered_bytes_, bytes.data(), count);
    buffered_bytes_ += count;
    position_ += count;
    bytes = bytes.subspan(count);
    if (buffered_bytes_ == kDirectBlockBytes) PENSTOCK_TRY(flush_buffer());
  }
  return success();
}

Result<void> DirectWriter::append(std::span<const std::span<const std::byte>> pieces) {
  if (!is_direct_) return PosixWriter::append(pieces);
  PENSTOCK_TRY(check_unfinished());
  for (const auto& piece : pieces) PENSTOCK_TRY(append(piece));
  return success();
}

Result<void> DirectWriter::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  if (!is_direct_) return PosixWriter::write_at(offset, bytes);
  PENSTOCK_TRY(check_unfinished());
  PENSTOCK_TRY(flush_buffer());
  return write_direct(offset, bytes);
}

// Writes the bytes in block_buffer_ first, so that the sync of PosixWriter::publish() includes them.
Result<void> DirectWriter::publish(Durability wanted, IfExists if_exists) {
  PENSTOCK_TRY(check_unfinished());
  if (Result<void> flushed = flush_buffer(); !flushed) {
    discard();
    return flushed;
  }
  return PosixWriter::publish(wanted, if_exists);
}

}  // namespace

Result<std::unique_ptr<Writer>> create_direct_object(PosixRoot& folder, MovedCounter& moved,
                                                     DirectMode& direct, std::string_view name,
                                                     uint64_t bytes_hint) {
  PENSTOCK_TRY(check_object_name(name));
  auto writer = std::make_unique<DirectWriter>(folder, moved, direct, name);
  PENSTOCK_TRY(writer->begin(bytes_hint));
  return writer;
}

}  // namespace penstock
