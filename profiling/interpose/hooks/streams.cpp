#include "profiling/interpose/hooks/streams.hpp"

#include "profiling/interpose/counting/blocks.hpp"
#include "profiling/interpose/writer/private_memory.hpp"

namespace penstock::interpose {

std::uint32_t stream_process = 1;
constinit std::atomic<StreamPage*> stream_pages[kStreamPages];

namespace {

constexpr unsigned kMagic = 0xfbad0000U;  // the upper half of _flags

}  // namespace

Stream* stream_at(int fd) noexcept {
  const auto number = static_cast<unsigned>(fd);
  if (number >= kStreamPages * kStreamsPerPage) {
    return nullptr;
  }
  std::atomic<StreamPage*>& entry = stream_pages[number / kStreamsPerPage];
  StreamPage* page = entry.load(std::memory_order_acquire);
  if (page == nullptr) [[unlikely]] {
    auto* fresh = static_cast<StreamPage*>(private_memory(sizeof(StreamPage)));
    if (fresh == nullptr) {
      return nullptr;
    }
    if (entry.compare_exchange_strong(page, fresh, std::memory_order_acq_rel)) {
      page = fresh;
    } else {
      give_back_private_memory(fresh, sizeof(StreamPage));
    }
  }
  return &page->at[number % kStreamsPerPage];
}

std::int64_t kernel_position(int fd) noexcept {
  const long at = system_call(SYS_lseek, fd, 0, SEEK_CUR);
  return at < 0 ? -1 : at;
}

void OnStream::meet(Stream& stream) noexcept {
  const std::int64_t at = kernel_position(fd_);
  stream.file = file_;
  stream.process = stream_process;
  stream.pushed_back = 0;
  stream.ticks = ticks();
  stream.position = at < 0 ? 0 : at - unread(*file_) + unwritten(*file_);
  stream_ = &stream;
  keep();
  stream_ = nullptr;
}

std::int64_t OnStream::written_before_failure(std::int64_t at_most) const noexcept {
  const std::int64_t at = kernel_position(fd_);
  const std::int64_t bytes = at < 0 ? 0 : at - (stream_->position - unwritten_);
  return bytes < 0 ? 0 : bytes > at_most ? at_most : bytes;
}

void OnStream::settle(ThreadLog& log, Stream& stream, const FILE& f, int fd) noexcept {
  Operation operation{.layer = PENSTOCK_STDIO, .offset = stream.position};
  if (stream.read_end == f._IO_read_end && f._IO_read_ptr > stream.read_ptr) {
    operation.call = PENSTOCK_CALL_READ;
    operation.length = f._IO_read_ptr - stream.read_ptr;
  } else if (stream.write_base == f._IO_write_base && f._IO_write_ptr > stream.write_ptr) {
    operation.call = PENSTOCK_CALL_WRITE;
    operation.length = f._IO_write_ptr - stream.write_ptr;
  } else {
    // Other streams' calls write what a stream holds: fflush(NULL), a read from a terminal.
    const std::int64_t written = (stream.write_ptr - stream.write_base) - unwritten(f);
    if (written > 0) {
      add_kernel_written(log, written);
      if (Description* description = described(fd)) {
        description->advance(written);
      }
    }
  }
  stream.read_ptr = f._IO_read_ptr;
  stream.read_end = f._IO_read_end;
  stream.write_base = f._IO_write_base;
  stream.write_ptr = f._IO_write_ptr;
  if (operation.length == 0) {
    return;
  }
  stream.position += operation.length;
  if (operation.call == PENSTOCK_CALL_READ && stream.pushed_back != 0) {
    const auto again = static_cast<std::int64_t>(stream.pushed_back);
    const std::int64_t less = again < operation.length ? again : operation.length;
    stream.pushed_back -= static_cast<std::uint32_t>(less);
    operation.offset += less;
    operation.length -= less;
    if (operation.length == 0) {
      return;
    }
  }
  operation.begin = operation.end = stream.ticks = ticks();
  count(log, fd, operation);
}

std::int64_t received(const OnStream& on, const FILE& f, const Before& before) noexcept {
  const Filled now(f);
  if (before.same(f)) {
    return on.unread_before() - unread(f);  // all from what was in the buffer
  }
  // The buffer was filled at least once. How much is in it now the last time brought.
  const std::int64_t at_least = on.unread_before() + (now.end - f._IO_buf_base) - unread(f);
  const std::int64_t at = kernel_position(f._fileno);
  // Before the last time the whole buffer was used up, as often as need be; at the end of the file the last
  // time brought nothing, and the one before it less than the whole. What does not fit is a position that
  // other processes move as well.
  const std::int64_t before_that = at < 0 ? -1 : at - unread(f) - on.stream().position - at_least;
  const std::int64_t room = f._IO_buf_end - f._IO_buf_base;
  const bool fits = before_that > 0 && room > 0 &&
                    (before_that % room == 0 || ((f._flags & kEndSeen) != 0 && before_that < room));
  return at_least + (fits ? before_that : 0);
}

void settle_streams() noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return;
  }
  for (unsigned p = 0; p < kStreamPages; ++p) {
    StreamPage* page = stream_pages[p].load(std::memory_order_acquire);
    if (page == nullptr) {
      continue;
    }
    for (unsigned i = 0; i < kStreamsPerPage; ++i) {
      Stream& stream = page->at[i];
      const int fd = static_cast<int>(p * kStreamsPerPage + i);
      FILE copy;
      if (stream.file == nullptr || stream.process != stream_process ||
          !copy_memory(stream.file, &copy, sizeof(copy))) {
        continue;
      }
      if ((static_cast<unsigned>(copy._flags) & 0xffff0000U) == kMagic && descriptor_of(copy) == fd) {
        OnStream::settle(*log, stream, copy, fd);
      }
    }
  }
}

}  // namespace penstock::interpose
