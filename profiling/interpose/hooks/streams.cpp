// The table of streams (FILE), and the less frequent steps of finding out how many bytes a call on a stream
// has moved.
//
// Threads: any thread, in wrappers of stdio. count_macro_bytes_of_all() runs in the thread that ends the
// process, executes another program or calls fflush(NULL).
// Locks: the members of StreamCall run under the FILE's lock if there may be other threads. stream_at() takes
// no lock. count_macro_bytes_of_all() takes no lock either; its comment explains why.
// Memory: from the kernel. Nothing calls malloc. stdio is never called: its calls would be counted, and might
// wait for a lock.
// Signals: a handler that uses the FILE of its interrupted thread may make the counts wrong (streams.hpp).
// Forks: stream_generation changes in a child, so the child knows no streams at first.
#include "profiling/interpose/hooks/streams.hpp"

#include "profiling/interpose/counting/blocks.hpp"
#include "profiling/interpose/writer/private_memory.hpp"

namespace penstock::interpose {

uint32_t stream_generation = 1;
constinit std::atomic<StreamPage*> stream_pages[kStreamPages];

namespace {

constexpr unsigned kStreamMagic = 0xfbad0000U;  // the upper half of _flags in every open FILE

}  // namespace

// Two threads may make the same page at once. Only one of them can store its page in `entry`; the other
// thread uses that page and frees its own. Release and acquire order make sure that a thread that finds the
// page finds it zeroed. Handlers may call this too.
Stream* stream_at(int fd) noexcept {
  const auto index = unsigned(fd);
  if (index >= kStreamPages * kStreamsPerPage) {
    return nullptr;
  }
  std::atomic<StreamPage*>& entry = stream_pages[index / kStreamsPerPage];
  StreamPage* page = entry.load(std::memory_order_acquire);
  if (page == nullptr) [[unlikely]] {
    auto* new_page = static_cast<StreamPage*>(private_memory(sizeof(StreamPage)));
    if (new_page == nullptr) {
      return nullptr;
    }
    if (entry.compare_exchange_strong(page, new_page, std::memory_order_acq_rel)) {
      page = new_page;
    } else {
      free_private_memory(new_page, sizeof(StreamPage));
    }
  }
  return &page->streams[index % kStreamsPerPage];
}

int64_t kernel_position(int fd) noexcept {
  const long position = system_call(SYS_lseek, fd, 0, SEEK_CUR);
  return position < 0 ? -1 : position;
}

namespace {

// Whether the Stream is from before the fork of this process.
bool is_inherited(const Stream& stream) noexcept {
  return stream.file != nullptr && stream.generation != stream_generation && session.header->forked != 0;
}

}  // namespace

void StreamCall::count_inherited_bytes(ThreadLog& log, const FILE& f, int fd, int64_t position) noexcept {
  if (const int64_t bytes = unwritten_bytes(f); bytes > 0) {
    const uint64_t now = ticks();
    count(log, fd,
          {.call = PENSTOCK_CALL_WRITE,
           .layer = PENSTOCK_STDIO,
           .offset = position < 0 ? 0 : position,
           .length = bytes,
           .begin = now,
           .end = now});
  }
}

// Finds out the position of a stream that is new in this process or on this descriptor. Called by
// StreamCall's constructor, under the FILE's lock. stream_ is set here only while remember_pointers() uses
// it; the constructor sets it later for the whole call.
void StreamCall::note_new_stream(Stream& stream, ThreadLog& log) noexcept {
  const int64_t position = kernel_position(fd_);
  if (is_inherited(stream) && stream.file == file_) {
    count_inherited_bytes(log, *file_, fd_, position);
  }
  stream.file = file_;
  stream.generation = stream_generation;
  stream.pushed_back_bytes = 0;
  stream.last_ticks = ticks();
  stream.position = position < 0 ? 0 : position - unread_bytes(*file_) + unwritten_bytes(*file_);
  stream_ = &stream;
  remember_pointers();
  stream_ = nullptr;
}

// How many bytes a failed write has written, at most `at_most`. Called right after the failed call: the
// program cannot have written again, so the kernel's position in the file is still that of the failure.
int64_t StreamCall::written_before_failure(int64_t at_most) const noexcept {
  const int64_t position = kernel_position(fd_);
  const int64_t bytes = position < 0 ? 0 : position - (stream_->position - unwritten_before_);
  return bytes < 0 ? 0 : bytes > at_most ? at_most : bytes;
}

// Counts the bytes that macros have moved since the last call, as the pointers in `f` show. `f` is either the
// stream itself, under its lock, or a copy that was made without the lock (count_macro_bytes_of_all()).
// The pointers of a copy may be out of date, because another thread may be in a call. So they are only
// compared and subtracted here, never followed. At worst some bytes are counted twice or not at all.
void StreamCall::count_macro_bytes(ThreadLog& log, Stream& stream, const FILE& f, int fd) noexcept {
  Operation operation{.layer = PENSTOCK_STDIO, .offset = stream.position};
  if (stream.read_end == f._IO_read_end && f._IO_read_ptr > stream.read_ptr) {
    operation.call = PENSTOCK_CALL_READ;
    operation.length = f._IO_read_ptr - stream.read_ptr;
  } else if (stream.write_base == f._IO_write_base && f._IO_write_ptr > stream.write_ptr) {
    operation.call = PENSTOCK_CALL_WRITE;
    operation.length = f._IO_write_ptr - stream.write_ptr;
  } else {
    // No macro has moved bytes. But the buffer may have been written to the file by a call that does not name
    // this stream: fflush(NULL), or a read of another stream from a terminal.
    const int64_t written = (stream.write_ptr - stream.write_base) - unwritten_bytes(f);
    if (written > 0) {
      add_kernel_written(log, written);
      if (Description* description = description_of(fd)) {
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
  if (operation.call == PENSTOCK_CALL_READ && stream.pushed_back_bytes != 0) {
    const auto pushed_back_bytes = int64_t(stream.pushed_back_bytes);
    const int64_t bytes_received_again =
        pushed_back_bytes < operation.length ? pushed_back_bytes : operation.length;
    stream.pushed_back_bytes -= uint32_t(bytes_received_again);
    operation.offset += bytes_received_again;
    operation.length -= bytes_received_again;
    if (operation.length == 0) {
      return;
    }
  }
  operation.begin = operation.end = stream.last_ticks = ticks();
  count(log, fd, operation);
}

// How many bytes the program received from the call. Called under the stream's lock, after the call. It makes
// a system call only if the buffer has been filled again.
int64_t received_bytes(const StreamCall& call, const FILE& f, const BufferState& before) noexcept {
  if (before.is_unchanged(f)) {
    return call.unread_before() - unread_bytes(f);  // all bytes came from the buffer
  }
  // The buffer was filled at least once. The bytes that are in it now came with the last filling.
  const int64_t least_bytes = call.unread_before() + (end_in_buffer(f) - f._IO_buf_base) - unread_bytes(f);
  const int64_t position = kernel_position(f._fileno);
  // The bytes that came with earlier fillings. Each of them filled the whole buffer, so the number is a
  // multiple of the buffer's size. At the end of the file it may be less than one buffer, because the last
  // filling brought nothing there. Any other number is not used: another process must have moved the position
  // as well.
  const int64_t earlier_bytes =
      position < 0 ? -1 : position - unread_bytes(f) - call.stream().position - least_bytes;
  const int64_t buffer_bytes = f._IO_buf_end - f._IO_buf_base;
  const bool is_plausible =
      earlier_bytes > 0 && buffer_bytes > 0 &&
      (earlier_bytes % buffer_bytes == 0 || ((f._flags & kEndSeen) != 0 && earlier_bytes < buffer_bytes));
  return least_bytes + (is_plausible ? earlier_bytes : 0);
}

// Counts the bytes that macros have moved in all streams. Called by the thread that ends the process,
// executes another program or calls fflush(NULL), perhaps in a handler. No FILE is locked, because another
// thread may hold the lock of a FILE for ever, for example in a read from a terminal.
// A FILE may have been freed by a call that no wrapper saw. So the kernel copies it (copy_memory()): where a
// plain read would crash, the kernel reports an error. The copy is used only if it still looks like a stream
// of this descriptor.
namespace {

// Calls `each` with every known Stream, its descriptor and a copy of its FILE.
void for_each_stream(auto each) noexcept {
  for (unsigned page_index = 0; page_index < kStreamPages; ++page_index) {
    StreamPage* page = stream_pages[page_index].load(std::memory_order_acquire);
    if (page == nullptr) {
      continue;
    }
    for (unsigned i = 0; i < kStreamsPerPage; ++i) {
      Stream& stream = page->streams[i];
      const int fd = int(page_index * kStreamsPerPage + i);
      FILE copy;
      if (stream.file != nullptr && copy_memory(stream.file, &copy, sizeof(copy)) &&
          (unsigned(copy._flags) & 0xffff0000U) == kStreamMagic && descriptor_of(copy) == fd) {
        each(stream, copy, fd);
      }
    }
  }
}

}  // namespace

void count_macro_bytes_of_all() noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return;
  }
  for_each_stream([log](Stream& stream, const FILE& copy, int fd) {
    if (stream.generation == stream_generation) {
      StreamCall::count_macro_bytes(*log, stream, copy, fd);
    }
  });
}

uint64_t count_bytes_to_flush() noexcept {
  uint64_t bytes = 0;
  if (session.state.load(std::memory_order_acquire) == SessionState::off || log_suspended()) {
    return bytes;
  }
  for_each_stream([&bytes](Stream& stream, const FILE& copy, int fd) {
    // A child that has counted nothing begins its session here, but only if it has something to write.
    ThreadLog* log = unwritten_bytes(copy) > 0 ? thread_log() : nullptr;
    if (log == nullptr) {
      return;
    }
    if (is_inherited(stream)) {
      StreamCall::count_inherited_bytes(*log, copy, fd, kernel_position(fd));
    } else if (stream.generation != stream_generation) {
      return;  // from before the session
    }
    add_kernel_written(*log, unwritten_bytes(copy));
    bytes += uint64_t(unwritten_bytes(copy));
  });
  return bytes;
}

}  // namespace penstock::interpose
