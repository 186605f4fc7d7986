// Counts reads and writes through libc's streams (FILE). The counted bytes are those that the program
// received or gave. The bytes that the kernel moved are derived from the stream's own pointers, which glibc's
// headers make public for their macros:
//
//   the kernel read   bytes that the program received + increase of the unread bytes in the buffer
//   the kernel wrote  bytes that the program gave - increase of the unwritten bytes in the buffer
//
// getc_unlocked() and putc_unlocked() are macros that move these pointers without a call. So each call
// remembers where it left the pointers. If they have moved at the next call, the program has used macros.
// These bytes are counted as one operation, at the next call or when the process ends.
//
// Threads: wrappers of stdio call this in any thread of the program. A Stream is used under its FILE's own
// lock (StreamCall). No lock is taken if the program has one thread, or does its own locking (__fsetlocking).
// Memory: pages of Streams come from the kernel. This code calls flockfile() and funlockfile(), but no other
// function of stdio, and never malloc. errno does not change.
// Signals: stdio is not safe in handlers. A handler that uses the same FILE all the same may find its Stream
// half updated: the counts are then wrong, but the program does not crash. It does not hang either, because
// FILE locks are recursive.
// Forks: a child knows no streams at first (stream_process).
#pragma once

#include <pthread.h>
#include <stdio.h>

#include "profiling/interpose/hooks/wrap.hpp"

extern "C" {
extern char __libc_single_threaded __attribute__((weak));
// Cleanup handlers in glibc's older form. It costs two stores; the current form costs a sigsetjmp().
void _pthread_cleanup_push(struct _pthread_cleanup_buffer*, void (*)(void*), void*) noexcept;
void _pthread_cleanup_pop(struct _pthread_cleanup_buffer*, int) noexcept;
}

namespace penstock::interpose {

// What is known about one stream. Used under the FILE's lock. Zeroed memory is a stream that is not known.
struct Stream {
  const FILE* file;
  std::int64_t position;  // file offset of the program's next byte; for a pipe: number of bytes so far
  const char* read_ptr;   // read_ptr to write_ptr: as the last call left them
  const char* read_end;
  const char* write_base;
  const char* write_ptr;
  std::uint32_t
      process;  // stream_process when this was written; if it differs, this Stream is not known any more
  std::uint32_t pushed_back;  // bytes that ungetc() pushed back; the program will receive them a second time
  std::uint64_t ticks;        // last reading of the clock for this stream
};
// Changes in a fork's child and when recording begins: all streams are unknown from then on.
extern std::uint32_t stream_process;

constexpr unsigned kStreamPages = 1024;
constexpr unsigned kStreamsPerPage = 1024;
struct StreamPage {
  Stream at[kStreamsPerPage];
};
extern std::atomic<StreamPage*> stream_pages[kStreamPages];
// The Stream of `fd`, created if necessary; null if there is no memory. Takes no lock. Pages are never freed.
Stream* stream_at(int fd) noexcept;
// The Stream of `fd`; null if its page was never created. Takes no lock.
inline Stream* known_stream(int fd) noexcept {
  const auto number = static_cast<unsigned>(fd);
  if (number >= kStreamPages * kStreamsPerPage) [[unlikely]] {
    return nullptr;
  }
  StreamPage* page = stream_pages[number / kStreamsPerPage].load(std::memory_order_acquire);
  return page == nullptr ? nullptr : &page->at[number % kStreamsPerPage];
}
// The descriptor refers to another file now: the next call on the stream asks the kernel for its position.
// Takes no lock.
inline void forget_stream(int fd) noexcept {
  if (Stream* stream = known_stream(fd)) {
    stream->file = nullptr;
  }
}
// Counts the bytes that macros have moved so far, in all streams. Called before the process ends or executes
// another program, and around fflush(NULL).
void count_macro_bytes_of_all() noexcept;

constexpr int kInBackup = 0x100;  // in _flags: the read pointers are in ungetc()'s backup buffer
constexpr int kIsFile = 0x2000;   // a file; in a stream of memory _fileno has no meaning
constexpr int kCurrentlyPutting = 0x800;
constexpr int kNoReads = 0x4;
constexpr int kEndSeen = 0x10;
constexpr int kErrorSeen = 0x20;
constexpr int kUserLocks = 0x8000;  // __fsetlocking(FSETLOCKING_BYCALLER)

// Whether other threads may use the same stream.
inline bool may_have_threads() noexcept {
  return &__libc_single_threaded == nullptr || __libc_single_threaded == 0;
}

// -1 for a stream without a descriptor: one of memory, or of the program's own functions (fopencookie()).
inline int descriptor_of(const FILE& f) noexcept {
  return (f._flags & kIsFile) != 0 ? f._fileno : -1;
}

// Bytes in the buffer that the program has not received yet.
inline std::int64_t unread(const FILE& f) noexcept {
  return f._IO_read_end - f._IO_read_ptr +
         ((f._flags & kInBackup) != 0 ? f._IO_save_end - f._IO_save_base : 0);
}
// Bytes in the buffer that the kernel has not received yet.
inline std::int64_t unwritten(const FILE& f) noexcept {
  return f._IO_write_ptr - f._IO_write_base;
}

// The program's position in the part of the buffer that came from the file. Bytes that were pushed back are
// not in that part.
inline const char* position_in_buffer(const FILE& f) noexcept {
  return (f._flags & kInBackup) != 0 ? f._IO_save_base : f._IO_read_ptr;
}
// The end of the part of the buffer that came from the file.
inline const char* end_in_buffer(const FILE& f) noexcept {
  return (f._flags & kInBackup) != 0 ? f._IO_save_end : f._IO_read_end;
}

// The state of the buffer before a call. After the call, same() tells whether glibc has filled the buffer
// again, once or several times. It compares the kernel's position, as far as glibc knows it, or else the
// first bytes of the buffer.
struct BufferState {
  explicit BufferState(const FILE& f) noexcept
      : at(position_in_buffer(f)),
        end(end_in_buffer(f)),
        offset(f._offset),
        room(f._IO_buf_end - f._IO_buf_base) {
    if (room >= static_cast<std::int64_t>(sizeof(begin))) {
      __builtin_memcpy(begin, f._IO_buf_base, sizeof(begin));
    }
  }
  bool same(const FILE& f) const noexcept {
    return end_in_buffer(f) == end && position_in_buffer(f) >= at && f._offset == offset &&
           (offset >= 0 || room < static_cast<std::int64_t>(sizeof(begin)) ||
            __builtin_memcmp(begin, f._IO_buf_base, sizeof(begin)) == 0);
  }
  const char* at;
  const char* end;
  std::int64_t offset;
  std::int64_t room;
  char begin[16] = {};
};

// Exists around one call on a stream, and counts the call. If there may be other threads, it holds the FILE's
// lock as long as it exists; the call itself takes the lock once more (FILE locks are recursive). If the
// thread is cancelled meanwhile, a cleanup handler releases the lock.
//
// The pointers are read before and after the call. Without the lock, another thread could move them in
// between, and bytes would be counted twice or not at all.
class StreamCall {
 public:
  explicit StreamCall(FILE* file) noexcept : file_(file), fd_(descriptor_of(*file)) {
    if (fd_ < 0) {
      return;
    }
    ThreadLog* log = thread_log();
    if (log == nullptr) {
      return;
    }
    if (may_have_threads() && (file->_flags & kUserLocks) == 0) [[unlikely]] {
      locked_ = true;
      flockfile(file);
      _pthread_cleanup_push(&cleanup_, &unlock, file);
    }
    Stream* stream = stream_at(fd_);
    if (stream == nullptr) [[unlikely]] {
      return;
    }
    if (stream->file != file || stream->process != stream_process) [[unlikely]] {
      note_new_stream(*stream);
    }
    log_ = log;
    stream_ = stream;
    if (stream->read_ptr != file->_IO_read_ptr || stream->write_ptr != file->_IO_write_ptr) [[unlikely]] {
      count_macro_bytes(*log, *stream, *file, fd_);
    }
    unread_ = unread(*file);
    unwritten_ = unwritten(*file);
    had_failed_ = (file->_flags & kErrorSeen) != 0;
  }
  ~StreamCall() {
    if (locked_) [[unlikely]] {
      _pthread_cleanup_pop(&cleanup_, 0);
      funlockfile(file_);
    }
  }
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

  // False: the call is made and not counted.
  bool is_counted() const noexcept { return stream_ != nullptr; }
  ThreadLog& log() const noexcept { return *log_; }
  Stream& stream() const noexcept { return *stream_; }

  // Reads the clock before a call that will probably reach the kernel. If the buffer alone can answer the
  // call, reading the clock would take longer than the call. Then the call is counted with no duration, at
  // the time of the last reading, unless segments are recorded.
  void read_clock() noexcept { begin_ = ticks(); }
  void time_read(std::size_t bytes) noexcept {
    if (static_cast<std::int64_t>(bytes) > unread_) {
      read_clock();
    }
  }
  void time_write(std::size_t bytes) noexcept {
    if (static_cast<std::int64_t>(bytes) > file_->_IO_write_end - file_->_IO_write_ptr) {
      read_clock();
    }
  }

  // After the call: the program received, or gave, `bytes`. If that is 0, the stream's error flag shows
  // whether the call failed; the reason is errno.
  void after_read(std::int64_t bytes) noexcept {
    const std::int64_t from_kernel = bytes + unread(*file_) - unread_;
    if (from_kernel > 0) {
      kernel_read(from_kernel);
    }
    count_kernel_writes(unwritten_);
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
  void after_write(std::int64_t bytes) noexcept {
    count_kernel_writes(unwritten_ + bytes);
    const Operation operation{.call = PENSTOCK_CALL_WRITE,
                              .layer = PENSTOCK_STDIO,
                              .failed = bytes == 0 ? failure() : 0,
                              .offset = stream_->position,
                              .length = bytes};
    stream_->position += bytes;
    count_it(operation);
    keep();
  }
  // After a call that is neither a read nor a write; it may have written the unwritten bytes of the buffer.
  // `failed`: errno, or 0.
  void after_other(penstock_call call, int failed) noexcept {
    count_kernel_writes(unwritten_);
    count_it({.call = call, .layer = PENSTOCK_STDIO, .failed = failed});
    keep();
  }
  // After a call that is not counted as an operation; it may have written bytes of the buffer.
  void after_uncounted() noexcept {
    count_kernel_writes(unwritten_);
    keep();
  }

  std::int64_t unread_before() const noexcept { return unread_; }
  std::int64_t unwritten_before() const noexcept { return unwritten_; }
  void kernel_read(std::int64_t bytes) noexcept {
    add_kernel_read(*log_, bytes);
    if (Description* description = description_of(fd_)) {
      description->advance(bytes);
    }
  }
  void kernel_written(std::int64_t bytes) noexcept {
    add_kernel_written(*log_, bytes);
    if (Description* description = description_of(fd_)) {
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

  // Counts what has happened since the last call, as the pointers of `f` show. `f` is the stream itself,
  // under its lock, or a copy of it, without the lock.
  static void count_macro_bytes(ThreadLog& log, Stream& stream, const FILE& f, int fd) noexcept;

 private:
  static void unlock(void* file) noexcept { funlockfile(static_cast<FILE*>(file)); }
  void note_new_stream(Stream& stream) noexcept;
  int failure() const noexcept { return (file_->_flags & kErrorSeen) != 0 ? errno : 0; }
  void count_kernel_writes(std::int64_t unwritten_then) noexcept {
    std::int64_t bytes = unwritten_then - unwritten(*file_);
    if (bytes > 0) {
      if (!had_failed_ && (file_->_flags & kErrorSeen) != 0) [[unlikely]] {
        bytes = written_before_failure(bytes);
      }
      kernel_written(bytes);
    }
  }
  // For a failed write: glibc drops the bytes that it could not write. The kernel's position in the file
  // shows how many were written.
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

// The kernel's position in the file; -1 if it has none. One direct system call.
std::int64_t kernel_position(int fd) noexcept;
// How many bytes the program received, for calls that do not return this number. It is calculated from the
// buffer before and after the call. It is exact for a file, and for a pipe if the call filled the buffer at
// most once.
std::int64_t received(const StreamCall& on, const FILE& file, const BufferState& before) noexcept;

}  // namespace penstock::interpose
