// Threads: any thread calls the back end and a DirectReader. The thread of a queue calls finish_read().
// Lock: none. The atomics direct_ (whether files are opened with O_DIRECT) and alignment_ (for direct reads)
// change at most a few times.
// Memory: a read allocates only for an error, and once in each thread for the aligned buffer of direct reads.
// Ctrl-C: it does not end a read, because calls are repeated after EINTR (as in posix.cpp).
// Crash: this file only reads. direct_writer.cpp writes.
#include "io_backends/direct_files.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "io_backends/files/direct_writer.hpp"

namespace penstock {
namespace {

std::string page_cache_remark(const PosixRoot& root) {
  return "the file system of '" + root.full_path("") +
         "' does not support direct I/O: reads and writes use the page cache (fallback=buffered)";
}

bool may_fall_back(const Options& options) {
  return options.text("fallback") == "buffered";
}

// Reads from byte `offset` until `out` is full or the file ends. It reads directly if `direct` has a value,
// else through the page cache.
FullIo pread_whole(int fd, const std::optional<DirectAlignment>& direct, uint64_t offset,
                   std::span<std::byte> out) {
  return direct ? pread_direct(fd, *direct, offset, out) : pread_full(fd, offset, out);
}

}  // namespace

Result<void> DirectReader::read_at(uint64_t offset, std::span<std::byte> out) {
  if (!direct_ || offset > uint64_t(INT64_MAX)) return PosixReader::read_at(offset, out);
  return check_read(pread_direct(fd(), *direct_, offset, out), offset, out.size());
}

DirectFiles::DirectFiles(std::string_view path, const Options& options, int advice, bool eof_read)
    : PosixFiles(path, options, advice, eof_read),
      direct_(options.boolean("direct") && !(may_fall_back(options) && lacks_direct_io(root_.path())),
              may_fall_back(options)) {
  caps_.bypasses_cache = direct_.on();
  if (options.boolean("direct") && !direct_.on()) remark(page_cache_remark(root_));
}

// Returns caps_, or buffered_caps_ after direct I/O was turned off. The returned reference is safe without a
// lock, because both never change after a caller can have a reference to them. The first call after direct
// I/O was turned off fills buffered_caps_; call_once makes other threads wait for that.
const Caps& DirectFiles::caps() const {
  if (!direct_.turned_off()) return caps_;
  std::call_once(buffered_caps_once_, [this] {
    buffered_caps_ = caps_;
    buffered_caps_.bypasses_cache = false;
    buffered_caps_.queue_is_cheaper = false;
  });
  return buffered_caps_;
}

std::vector<std::string> DirectFiles::remarks() const {
  std::vector<std::string> all_remarks = PosixFiles::remarks();
  if (direct_.turned_off()) all_remarks.push_back(page_cache_remark(root_));
  return all_remarks;
}

Result<std::unique_ptr<Reader>> DirectFiles::open(std::string_view name) {
  PENSTOCK_TRY(check_object_name(name));
  PENSTOCK_ASSIGN(Fd fd, open_direct(name));
  PENSTOCK_TRY(mode_of(fd.get(), name));
  PENSTOCK_ASSIGN(const auto direct, ask_alignment(fd.get(), name));
  return std::make_unique<DirectReader>(std::move(fd), direct, root_.full_path(name), moved_);
}

Result<std::unique_ptr<Writer>> DirectFiles::create(std::string_view name, uint64_t bytes_hint) {
  if (!direct_.on()) return PosixFiles::create(name, bytes_hint);
  return create_direct_object(root_, moved_, direct_, name, bytes_hint);
}

// alignment(), likely_alignment() and ask_alignment() read alignment_ without a lock. Relaxed order is
// enough, because one atomic has the alignment of memory and that of the offset, and it guards no other
// memory.
Result<std::optional<DirectAlignment>> DirectFiles::alignment(int fd, std::string_view name) {
  const DirectAlignment known = alignment_.load(std::memory_order_relaxed);
  return !direct_.on() || known.offset == 0 ? ask_alignment(fd, name) : std::optional(known);
}

std::optional<DirectAlignment> DirectFiles::likely_alignment() const {
  const DirectAlignment known = alignment_.load(std::memory_order_relaxed);
  if (!direct_.on()) return std::nullopt;
  return known.offset == 0 ? DirectAlignment{} : known;
}

Result<std::optional<DirectAlignment>> DirectFiles::ask_alignment(int fd, std::string_view name) {
  const auto wanted = direct_.on() ? direct_alignment(fd) : std::nullopt;
  if (!wanted) {
    if (direct_.on()) {
      if (!direct_.may_turn_off()) return no_direct_io(root_.full_path(name));
      direct_.turn_off();
    }
    // If direct I/O was turned off after this file was opened, by this thread or another, the descriptor
    // still has O_DIRECT, which is removed here.
    if (direct_.turned_off()) clear_o_direct(fd);
    return std::optional<DirectAlignment>();
  }
  // If two threads store to alignment_ at the same time, the larger value may be lost. That costs only one
  // EINVAL, after which read_object() and finish_read() ask again.
  const DirectAlignment known = alignment_.load(std::memory_order_relaxed);
  const DirectAlignment largest{std::max(known.memory, wanted->memory),
                                std::max(known.offset, wanted->offset)};
  alignment_.store(largest, std::memory_order_relaxed);
  return std::optional(largest);
}

Result<uint64_t> DirectFiles::read_object(std::string_view name, uint64_t length_hint,
                                          std::span<std::byte> out) {
  PENSTOCK_TRY(check_read_object(name, length_hint, out.size()));
  PENSTOCK_ASSIGN(const Fd fd, open_direct(name));
  uint64_t length = length_hint;
  if (length == 0) {
    PENSTOCK_ASSIGN(length, object_length(fd.get(), name, out.size()));
  }
  PENSTOCK_ASSIGN(auto direct, alignment(fd.get(), name));
  FullIo io = pread_whole(fd.get(), direct, 0, out.first(length));
  // perhaps this file needs a larger alignment, because it is on another file system below the same root
  if (direct && io.sys_errno == EINVAL && io.done == 0) {
    PENSTOCK_ASSIGN(direct, ask_alignment(fd.get(), name));
    io = pread_whole(fd.get(), direct, 0, out.first(length));
  }
  PENSTOCK_TRY(check_object_read(io, name, length));
  if (eof_read_) {
    std::byte extra_byte{};
    const FullIo at_end = pread_whole(fd.get(), direct, length, {&extra_byte, 1});
    if (at_end.sys_errno != 0) return root_.error(at_end.sys_errno, "cannot read", name);
  }
  return length;
}

Result<Fd> DirectFiles::open_direct(std::string_view name) {
  if (!direct_.on()) return open_to_read(name);
  auto fd = open_to_read(name, O_DIRECT);
  if (fd.ok() || fd.error().sys_errno != EINVAL) return fd;
  // The name may be a folder, for which O_DIRECT also fails with EINVAL. The caller then gets the folder, and
  // reports it as in the other back ends.
  if (auto folder = root_.open(name, O_RDONLY | O_DIRECTORY, "cannot open"); folder.ok()) return folder;
  if (!direct_.may_turn_off()) return no_direct_io(root_.full_path(name));
  fd = open_to_read(name);
  // Direct I/O is turned off only if the open without O_DIRECT succeeds. If that open fails, too, EINVAL had
  // another cause.
  if (fd.ok()) direct_.turn_off();
  return fd;
}

// Finishes an asynchronous read, on the thread of the queue. If the read was short or failed with EINTR,
// EAGAIN or EINVAL, perform() reads again by blocking calls. perform() may write to the operation's memory,
// because the kernel no longer does.
Result<uint64_t> DirectFiles::finish_read(const Operation& operation, const AlignedRead& read, size_t bytes,
                                          int64_t got, std::string_view failed_operation) {
  if (got < 0 && got != -EINTR && got != -EAGAIN && got != -EINVAL)
    return errno_error(int(-got), failed_operation, full_name(operation));
  if (got < 0 || uint64_t(got) < read.skip_bytes + bytes) return perform(*this, operation);
  moved_.add_read(bytes);
  std::byte* const memory = output_span(operation).data();
  if (read.into != memory) std::memcpy(memory, read.into + read.skip_bytes, bytes);
  return uint64_t{bytes};
}

std::string DirectFiles::full_name(const Operation& operation) const {
  if (const auto* const object = std::get_if<ReadObject>(&operation.what))
    return root_.full_path(object->name);
  return static_cast<const PosixReader&>(*std::get<ReadAt>(operation.what).reader).name();
}

}  // namespace penstock
