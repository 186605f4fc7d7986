// Counts what goes through libc's streams (FILE). Bytes are those that the program received or gave. What the
// kernel moved is derived from the stream's own pointers, which glibc's headers make public for their macros:
//
//   the kernel read   what the call gave the program, and by how much more the buffer holds unread
//   the kernel wrote  what the program gave, and by how much less the buffer holds unwritten
//
// getc_unlocked() and putc_unlocked() are macros that move these pointers without any call. So where the
// pointers were when the last call ended is remembered. What they moved since then, the program moved; it is
// counted as one operation with the next call, or when the process ends.
//
// Threads: wrappers of stdio call this in any thread of the program. A Stream is used under its FILE's own
// lock (OnStream). Where the program has one thread, or does its own locking (__fsetlocking), no lock is
// taken.
// Memory: pages of Streams come from the kernel. This code never calls stdio but flockfile() and
// funlockfile(), and never malloc. errno is left alone.
// Signals: stdio is not safe in handlers, and this adds nothing: a handler that uses the same FILE may find
// its Stream half updated, which gives wrong counts and no fault. FILE locks are recursive, so it does not
// hang.
// Forks: a child counts its streams anew (stream_process).
#pragma once

#include <pthread.h>
#include <stdio.h>

#include "profiling/interpose/hooks/wrap.hpp"

extern "C" {
extern char __libc_single_threaded __attribute__((weak));
// Cleanup handlers in glibc's old form: two stores, where the present one needs a sigsetjmp().
void _pthread_cleanup_push(struct _pthread_cleanup_buffer*, void (*)(void*), void*) noexcept;
void _pthread_cleanup_pop(struct _pthread_cleanup_buffer*, int) noexcept;
}

namespace penstock::interpose {

// What is known of a stream, used under its lock. Zeroed memory is a stream that is not known.
struct Stream {
  const FILE* file;
  std::int64_t position;  // of the next byte for the program; of a pipe, how many there were
  const char* read_ptr;   // as the last call left them
  const char* read_end;
  const char* write_base;
  const char* write_ptr;
  std::uint32_t process;      // stream_process when this was written: a fork's child counts anew
  std::uint32_t pushed_back;  // bytes that were received already and will be once more
  std::uint64_t ticks;        // when the clock was last read for it
};
extern std::uint32_t stream_process;

constexpr unsigned kStreamPages = 1024;
constexpr unsigned kStreamsPerPage = 1024;
struct StreamPage {
  Stream at[kStreamsPerPage];
};
extern std::atomic<StreamPage*> stream_pages[kStreamPages];
// The Stream of `fd`, made if necessary; null without memory. Takes no lock. Pages are never freed.
Stream* stream_at(int fd) noexcept;
// The same, null if it was never asked for.
inline Stream* known_stream(int fd) noexcept {
  const auto number = static_cast<unsigned>(fd);
  if (number >= kStreamPages * kStreamsPerPage) [[unlikely]] {
    return nullptr;
  }
  StreamPage* page = stream_pages[number / kStreamsPerPage].load(std::memory_order_acquire);
  return page == nullptr ? nullptr : &page->at[number % kStreamsPerPage];
}
// The descriptor is another file's now, so the stream's position must be asked for anew. Takes no lock.
inline void forget_stream(int fd) noexcept {
  if (Stream* stream = known_stream(fd)) {
    stream->file = nullptr;
  }
}
// Counts what macros have moved so far, for all streams: before the process ends or executes another program,
// and around fflush(NULL).
void settle_streams() noexcept;

constexpr int kInBackup = 0x100;  // _flags: the pointers are those of what ungetc() pushed back
constexpr int kIsFile = 0x2000;   // not of memory, whose _fileno is left as it happens to be
constexpr int kCurrentlyPutting = 0x800;
constexpr int kNoReads = 0x4;
constexpr int kEndSeen = 0x10;
constexpr int kErrorSeen = 0x20;
constexpr int kUserLocks = 0x8000;  // __fsetlocking(FSETLOCKING_BYCALLER)

// Whether other threads may use the same stream.
inline bool threads_may_be() noexcept {
  return &__libc_single_threaded == nullptr || __libc_single_threaded == 0;
}

// -1 for a stream without a descriptor: memory, or functions of the program.
inline int descriptor_of(const FILE& f) noexcept {
  return (f._flags & kIsFile) != 0 ? f._fileno : -1;
}

// Bytes in the buffer that the program has not received, or that the kernel has not received yet.
inline std::int64_t unread(const FILE& f) noexcept {
  return f._IO_read_end - f._IO_read_ptr +
         ((f._flags & kInBackup) != 0 ? f._IO_save_end - f._IO_save_base : 0);
}
inline std::int64_t unwritten(const FILE& f) noexcept {
  return f._IO_write_ptr - f._IO_write_base;
}

// The program's place in what the buffer has of the file, without what it pushed back, and where that ends.
inline const char* place_in_buffer(const FILE& f) noexcept {
  return (f._flags & kInBackup) != 0 ? f._IO_save_base : f._IO_read_ptr;
}
inline const char* end_in_buffer(const FILE& f) noexcept {
  return (f._flags & kInBackup) != 0 ? f._IO_save_end : f._IO_read_end;
}

// The same before a call, and what shows afterwards whether the buffer was filled again, once or several
// times: the kernel's position as glibc knows it, or else the first bytes of the buffer.
struct Before {
  explicit Before(const FILE& f) noexcept
      : at(place_in_buffer(f)),
        end(end_in_buffer(f)),
        offset(f._offset),
        room(f._IO_buf_end - f._IO_buf_base) {
    if (room >= static_cast<std::int64_t>(sizeof(begin))) {
      __builtin_memcpy(begin, f._IO_buf_base, sizeof(begin));
    }
  }
  bool same(const FILE& f) const noexcept {
    return end_in_buffer(f) == end && place_in_buffer(f) >= at && f._offset == offset &&
           (offset >= 0 || room < static_cast<std::int64_t>(sizeof(begin)) ||
            __builtin_memcmp(begin, f._IO_buf_base, sizeof(begin)) == 0);
  }
  const char* at;
  const char* end;
  std::int64_t offset;
  std::int64_t room;
  char begin[16] = {};
};

// Around one call on a stream. The FILE's lock is held as long as this lives if there may be other threads;
// the call itself then takes it once more. If the thread is cancelled meanwhile, a cleanup handler releases
// it. Without the lock another thread's call could move the pointers between the looks before and after the
// call, and bytes would be counted twice or not at all.
class OnStream {
 public:
  explicit OnStream(FILE* file) noexcept : file_(file), fd_(descriptor_of(*file)) {
    if (fd_ < 0) {
      return;
    }
    ThreadLog* log = thread_log();
    if (log == nullptr) {
      return;
    }
    if (threads_may_be() && (file->_flags & kUserLocks) == 0) [[unlikely]] {
      locked_ = true;
      flockfile(file);
      _pthread_cleanup_push(&cleanup_, &unlock, file);
    }
    Stream* stream = stream_at(fd_);
    if (stream == nullptr) [[unlikely]] {
      return;
    }
    if (stream->file != file || stream->process != stream_process) [[unlikely]] {
      meet(*stream);
    }
    log_ = log;
    stream_ = stream;
    if (stream->read_ptr != file->_IO_read_ptr || stream->write_ptr != file->_IO_write_ptr) [[unlikely]] {
      settle(*log, *stream, *file, fd_);
    }
    unread_ = unread(*file);
    unwritten_ = unwritten(*file);
    had_failed_ = (file->_flags & kErrorSeen) != 0;
  }
  ~OnStream() {
    if (locked_) [[unlikely]] {
      _pthread_cleanup_pop(&cleanup_, 0);
      funlockfile(file_);
    }
  }
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

  // If not, the call is made and not counted.
  bool watched() const noexcept { return stream_ != nullptr; }
  ThreadLog& log() const noexcept { return *log_; }
  Stream& stream() const noexcept { return *stream_; }

  // Before a call that will probably reach the kernel. What the buffer alone answers takes less time than
  // reading the clock. It is counted without a time, and dated by the last reading, unless segments are kept.
  void time_it() noexcept { begin_ = ticks(); }
  void time_read(std::size_t bytes) noexcept {
    if (static_cast<std::int64_t>(bytes) > unread_) {
      time_it();
    }
  }
  void time_write(std::size_t bytes) noexcept {
    if (static_cast<std::int64_t>(bytes) > file_->_IO_write_end - file_->_IO_write_ptr) {
      time_it();
    }
  }

  // After the call: `bytes` were received, or given. If there were none, the stream's error flag says whether
  // it failed, with errno.
  void was_read(std::int64_t bytes) noexcept {
    const std::int64_t from_kernel = bytes + unread(*file_) - unread_;
    if (from_kernel > 0) {
      kernel_read(from_kernel);
    }
    wrote_from(unwritten_);
    Operation operation{.call = PENSTOCK_CALL_READ,
                        .layer = PENSTOCK_STDIO,
                        .failed = bytes == 0 ? failure() : 0,
                        .offset = stream_->position};
    const auto again = static_cast<std::int64_t>(stream_->pushed_back);
    if (again != 0) [[unlikely]] {
      const std::int64_t less = again < bytes ? again : bytes;
      stream_->pushed_back -= static_cast<std::uint32_t>(less);
      operation.offset += less;
      operation.length = bytes - less;
      if (less != 0 && operation.length == 0) {
        stream_->position += bytes;
        keep();
        return;
      }
    } else {
      operation.length = bytes;
    }
    stream_->position += bytes;
    count_it(operation);
    keep();
  }
  void was_written(std::int64_t bytes) noexcept {
    wrote_from(unwritten_ + bytes);
    const Operation operation{.call = PENSTOCK_CALL_WRITE,
                              .layer = PENSTOCK_STDIO,
                              .failed = bytes == 0 ? failure() : 0,
                              .offset = stream_->position,
                              .length = bytes};
    stream_->position += bytes;
    count_it(operation);
    keep();
  }
  // A call that is neither; it may have written what was unwritten. `failed`: errno.
  void was(penstock_call call, int failed) noexcept {
    wrote_from(unwritten_);
    count_it({.call = call, .layer = PENSTOCK_STDIO, .failed = failed});
    keep();
  }
  // A call that is not counted itself.
  void was_nothing() noexcept {
    wrote_from(unwritten_);
    keep();
  }

  std::int64_t unread_before() const noexcept { return unread_; }
  std::int64_t unwritten_before() const noexcept { return unwritten_; }
  void kernel_read(std::int64_t bytes) noexcept {
    add_kernel_read(*log_, bytes);
    if (Description* description = described(fd_)) {
      description->advance(bytes);
    }
  }
  void kernel_written(std::int64_t bytes) noexcept {
    add_kernel_written(*log_, bytes);
    if (Description* description = described(fd_)) {
      description->advance(bytes);
    }
  }
  // Remembers where the call left the pointers.
  void keep() noexcept {
    stream_->read_ptr = file_->_IO_read_ptr;
    stream_->read_end = file_->_IO_read_end;
    stream_->write_base = file_->_IO_write_base;
    stream_->write_ptr = file_->_IO_write_ptr;
  }

  // Counts what the pointers of `f` (the stream, or a copy of it) show to have happened since the last call.
  // Under the stream's lock, except for copies.
  static void settle(ThreadLog& log, Stream& stream, const FILE& f, int fd) noexcept;

 private:
  static void unlock(void* file) noexcept { funlockfile(static_cast<FILE*>(file)); }
  void meet(Stream& stream) noexcept;
  int failure() const noexcept { return (file_->_flags & kErrorSeen) != 0 ? errno : 0; }
  void wrote_from(std::int64_t unwritten_then) noexcept {
    std::int64_t bytes = unwritten_then - unwritten(*file_);
    if (bytes > 0) {
      if (!had_failed_ && (file_->_flags & kErrorSeen) != 0) [[unlikely]] {
        bytes = written_before_failure(bytes);
      }
      kernel_written(bytes);
    }
  }
  // glibc drops what it could not write. The kernel's position in the file shows how much it wrote.
  [[gnu::cold]] std::int64_t written_before_failure(std::int64_t at_most) const noexcept;
  void count_it(Operation operation) noexcept {
    if (begin_ != 0 || segments_wanted()) {
      stream_->ticks = ticks();
    }
    operation.end = stream_->ticks;
    operation.begin = begin_ == 0 ? operation.end : begin_;
    count(*log_, fd_, operation);
  }

  FILE* file_;
  int fd_;
  bool locked_ = false;
  bool had_failed_ = false;
  ThreadLog* log_ = nullptr;
  Stream* stream_ = nullptr;
  std::int64_t unread_ = 0;
  std::int64_t unwritten_ = 0;
  std::uint64_t begin_ = 0;
  _pthread_cleanup_buffer cleanup_;
};

// The kernel's position in the file; -1 where it has none. One direct system call.
std::int64_t kernel_position(int fd) noexcept;
// For calls that do not return how many bytes they gave the program: that number, from what was in the buffer
// before. It is exact for a file, and for a pipe if the call filled the buffer at most once.
std::int64_t received(const OnStream& on, const FILE& file, const Before& before) noexcept;

}  // namespace penstock::interpose
