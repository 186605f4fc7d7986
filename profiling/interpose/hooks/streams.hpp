// Counts reads and writes through libc's streams (FILE). The counted bytes are those that the program
// received or wrote. How many bytes the kernel moved is derived from the stream's own pointers, which glibc's
// headers make public for their macros:
//
//   the kernel read   bytes that the program received + increase of the unread bytes in the buffer
//   the kernel wrote  bytes that the program wrote - increase of the unwritten bytes in the buffer
//
// getc_unlocked() and putc_unlocked() are macros that move these pointers without a call. So after each call
// the wrapper remembers the pointers. If they have moved before the next call, the program has used macros.
// The bytes that macros moved are counted as one operation, at the next call or when the process ends.
//
// Threads: wrappers of stdio call this in any thread of the program. A Stream is used under its FILE's own
// lock (StreamCall). No lock is taken if the program has only one thread, or does its own locking
// (__fsetlocking()).
// Memory: pages of Streams come from the kernel. This code calls flockfile() and funlockfile(), but no other
// function of stdio, and never malloc. errno does not change.
// Signals: stdio is not safe in handlers. If a handler uses the FILE of its interrupted thread nevertheless,
// it may find the Stream half updated. Then the counts are wrong, but the program does not crash. It does not
// hang either, because FILE locks are recursive.
// Forks: a child knows no streams at first (stream_generation).
#pragma once

#include <pthread.h>
#include <stdio.h>

#include "profiling/interpose/hooks/wrap.hpp"

extern "C" {
extern char __libc_single_threaded __attribute__((weak));
// Registers a function that runs if the thread is cancelled. This is glibc's older way, which costs only a
// few stores; the newer pthread_cleanup_push() costs a sigsetjmp().
void _pthread_cleanup_push(struct _pthread_cleanup_buffer*, void (*)(void*), void*) noexcept;
void _pthread_cleanup_pop(struct _pthread_cleanup_buffer*, int) noexcept;
}

namespace penstock::interpose {

// What is known about one stream (FILE). If all members are zero, nothing is known. Used under the FILE's
// lock, except by forget_stream() and count_macro_bytes_of_all().
struct Stream {
  const FILE* file;
  int64_t position;      // file offset of the program's next byte; for a pipe: number of bytes so far
  const char* read_ptr;  // read_ptr to write_ptr: the FILE's pointers after the last call
  const char* read_end;
  const char* write_base;
  const char* write_ptr;
  // The value that stream_generation had when this was stored. If stream_generation has changed since then,
  // this Stream is out of date.
  uint32_t generation;
  uint32_t pushed_back_bytes;  // bytes that ungetc() pushed back; the program will receive them a second time
  uint64_t last_ticks;         // last reading of the clock for this stream
};
// A number that changes in a fork's child and when recording begins. A Stream with another number in
// `generation` is out of date.
extern uint32_t stream_generation;

constexpr unsigned kStreamPages = 1024;
constexpr unsigned kStreamsPerPage = 1024;
struct StreamPage {
  Stream streams[kStreamsPerPage];
};
extern std::atomic<StreamPage*> stream_pages[kStreamPages];
// Returns the Stream of `fd`, and makes its page if necessary. Returns null if there is no memory. Takes no
// lock. Pages are never freed.
Stream* stream_at(int fd) noexcept;
// Returns the Stream of `fd`, or null if its page was never made. Takes no lock.
inline Stream* known_stream(int fd) noexcept {
  const auto index = unsigned(fd);
  if (index >= kStreamPages * kStreamsPerPage) [[unlikely]] {
    return nullptr;
  }
  StreamPage* page = stream_pages[index / kStreamsPerPage].load(std::memory_order_acquire);
  return page == nullptr ? nullptr : &page->streams[index % kStreamsPerPage];
}
// Notes that `fd` refers to another file now. So the next call on its stream asks the kernel for the
// position. Takes no lock.
inline void forget_stream(int fd) noexcept {
  if (Stream* stream = known_stream(fd)) {
    stream->file = nullptr;
  }
}
// Counts the bytes that macros have moved in all streams so far. Called before the process ends or executes
// another program, and before and after fflush(NULL).
void count_macro_bytes_of_all() noexcept;

// Returns how many bytes libc's exit() will write from the buffers of all streams. They are counted as what
// the kernel wrote. In a fork's child, buffers of streams that it has not used since the fork have bytes of
// its parent; they are counted as writes of this process. Called in exit(), after count_macro_bytes_of_all().
uint64_t count_bytes_to_flush() noexcept;

constexpr int kInBackupBuffer = 0x100;  // flag in _flags: the read pointers are in ungetc()'s backup buffer
constexpr int kHasFile = 0x2000;        // the stream has a file; otherwise _fileno has no meaning
constexpr int kCurrentlyPutting = 0x800;
constexpr int kNoReads = 0x4;
constexpr int kEndSeen = 0x10;
constexpr int kErrorSeen = 0x20;
constexpr int kProgramLocks = 0x8000;  // the program locks the stream itself (__fsetlocking())

// Whether the process may have other threads, which may use the same stream.
inline bool may_have_threads() noexcept {
  return &__libc_single_threaded == nullptr || __libc_single_threaded == 0;
}

// The stream's descriptor; -1 if it has none: a stream of memory, or of the program's own functions
// (fopencookie()).
inline int descriptor_of(const FILE& f) noexcept {
  return (f._flags & kHasFile) != 0 ? f._fileno : -1;
}

// Bytes in the buffer that the program has not received yet.
inline int64_t unread_bytes(const FILE& f) noexcept {
  return f._IO_read_end - f._IO_read_ptr +
         ((f._flags & kInBackupBuffer) != 0 ? f._IO_save_end - f._IO_save_base : 0);
}
// Bytes in the buffer that the kernel has not received yet.
inline int64_t unwritten_bytes(const FILE& f) noexcept {
  return f._IO_write_ptr - f._IO_write_base;
}

// The program's position among the bytes of the buffer that came from the file. Bytes that were pushed back
// (ungetc()) are not among them.
inline const char* position_in_buffer(const FILE& f) noexcept {
  return (f._flags & kInBackupBuffer) != 0 ? f._IO_save_base : f._IO_read_ptr;
}
// The end of the bytes of the buffer that came from the file.
inline const char* end_in_buffer(const FILE& f) noexcept {
  return (f._flags & kInBackupBuffer) != 0 ? f._IO_save_end : f._IO_read_end;
}

// The state of a stream's buffer before a call. After the call, is_unchanged() tells whether glibc has left
// the buffer as it was, or has filled it again, once or several times. It compares the kernel's position
// (`offset`). If glibc does not know that position, it compares the first bytes of the buffer.
struct BufferState {
  explicit BufferState(const FILE& f) noexcept
      : position(position_in_buffer(f)),
        read_end(end_in_buffer(f)),
        offset(f._offset),
        buffer_bytes(f._IO_buf_end - f._IO_buf_base) {
    if (buffer_bytes >= int64_t(sizeof(first_bytes))) {
      __builtin_memcpy(first_bytes, f._IO_buf_base, sizeof(first_bytes));
    }
  }
  bool is_unchanged(const FILE& f) const noexcept {
    return end_in_buffer(f) == read_end && position_in_buffer(f) >= position && f._offset == offset &&
           (offset >= 0 || buffer_bytes < int64_t(sizeof(first_bytes)) ||
            __builtin_memcmp(first_bytes, f._IO_buf_base, sizeof(first_bytes)) == 0);
  }
  const char* position;
  const char* read_end;
  int64_t offset;
  int64_t buffer_bytes;
  char first_bytes[16] = {};
};

// Exists around one call on a stream, and counts the call. If there may be other threads, it holds the FILE's
// lock as long as it exists: otherwise another thread could move the pointers, which are read before and
// after the call, and bytes would be counted twice or not at all.
//
// The call itself takes the lock once more (FILE locks are recursive). If the thread is cancelled inside the
// call, a cleanup handler releases the lock.
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
    if (may_have_threads() && (file->_flags & kProgramLocks) == 0) [[unlikely]] {
      is_locked_ = true;
      flockfile(file);
      _pthread_cleanup_push(&cleanup_, &unlock, file);
    }
    Stream* stream = stream_at(fd_);
    if (stream == nullptr) [[unlikely]] {
      return;
    }
    if (stream->file != file || stream->generation != stream_generation) [[unlikely]] {
      note_new_stream(*stream, *log);
    }
    log_ = log;
    stream_ = stream;
    if (stream->read_ptr != file->_IO_read_ptr || stream->write_ptr != file->_IO_write_ptr) [[unlikely]] {
      count_macro_bytes(*log, *stream, *file, fd_);
    }
    unread_before_ = unread_bytes(*file);
    unwritten_before_ = unwritten_bytes(*file);
    had_error_ = (file->_flags & kErrorSeen) != 0;
  }
  ~StreamCall() {
    if (is_locked_) [[unlikely]] {
      _pthread_cleanup_pop(&cleanup_, 0);
      funlockfile(file_);
    }
  }
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

  // If false, the call is still made, but not counted.
  bool is_counted() const noexcept { return stream_ != nullptr; }
  ThreadLog& log() const noexcept { return *log_; }
  Stream& stream() const noexcept { return *stream_; }

  // Reads the clock. Called before a call that will probably reach the kernel. If the buffer alone is enough
  // for the call, the clock is not read, because that would take longer than the call. Such a call is counted
  // with no duration, at the time when the clock was last read. If segments are recorded, the clock is read
  // after the call.
  void read_clock() noexcept { begin_ticks_ = ticks(); }
  void read_clock_for_read(size_t bytes) noexcept {
    if (int64_t(bytes) > unread_before_) {
      read_clock();
    }
  }
  void read_clock_for_write(size_t bytes) noexcept {
    if (int64_t(bytes) > file_->_IO_write_end - file_->_IO_write_ptr) {
      read_clock();
    }
  }

  // after_read() and after_write() count the call after it was made. `bytes` is what the program received or
  // wrote. If it is 0, the stream's error flag shows whether the call failed, and errno why.
  void after_read(int64_t bytes) noexcept {
    const int64_t kernel_bytes = bytes + unread_bytes(*file_) - unread_before_;
    if (kernel_bytes > 0) {
      note_kernel_read(kernel_bytes);
    }
    count_kernel_writes(unwritten_before_);
    Operation operation{.call = PENSTOCK_CALL_READ,
                        .layer = PENSTOCK_STDIO,
                        .failed = bytes == 0 ? failure() : 0,
                        .offset = stream_->position};
    const auto pushed_back_bytes = int64_t(stream_->pushed_back_bytes);
    if (pushed_back_bytes != 0) [[unlikely]] {
      const int64_t bytes_received_again = pushed_back_bytes < bytes ? pushed_back_bytes : bytes;
      stream_->pushed_back_bytes -= uint32_t(bytes_received_again);
      operation.offset += bytes_received_again;
      operation.length = bytes - bytes_received_again;
      if (bytes_received_again != 0 && operation.length == 0) {
        stream_->position += bytes;
        remember_pointers();
        return;
      }
    } else {
      operation.length = bytes;
    }
    stream_->position += bytes;
    count_operation(operation);
    remember_pointers();
  }
  void after_write(int64_t bytes) noexcept {
    count_kernel_writes(unwritten_before_ + bytes);
    const Operation operation{.call = PENSTOCK_CALL_WRITE,
                              .layer = PENSTOCK_STDIO,
                              .failed = bytes == 0 ? failure() : 0,
                              .offset = stream_->position,
                              .length = bytes};
    stream_->position += bytes;
    count_operation(operation);
    remember_pointers();
  }
  // Counts a call that is neither a read nor a write, after it was made. The call may have written the buffer
  // to the file; these bytes are counted too. `failed` is errno, or 0.
  void after_other(penstock_call call, int failed) noexcept {
    count_kernel_writes(unwritten_before_);
    count_operation({.call = call, .layer = PENSTOCK_STDIO, .failed = failed});
    remember_pointers();
  }
  // Counts the bytes of the buffer that a call has written to the file, but not the call itself. Called after
  // a call that does not count as an operation.
  void after_uncounted() noexcept {
    count_kernel_writes(unwritten_before_);
    remember_pointers();
  }

  int64_t unread_before() const noexcept { return unread_before_; }
  int64_t unwritten_before() const noexcept { return unwritten_before_; }
  void note_kernel_read(int64_t bytes) noexcept {
    add_kernel_read(*log_, bytes);
    if (Description* description = description_of(fd_)) {
      description->advance(bytes);
    }
  }
  void note_kernel_written(int64_t bytes) noexcept {
    add_kernel_written(*log_, bytes);
    if (Description* description = description_of(fd_)) {
      description->advance(bytes);
    }
  }
  // Remembers the FILE's pointers after the call. The next call compares them, to find out whether macros
  // have moved bytes.
  void remember_pointers() noexcept {
    stream_->read_ptr = file_->_IO_read_ptr;
    stream_->read_end = file_->_IO_read_end;
    stream_->write_base = file_->_IO_write_base;
    stream_->write_ptr = file_->_IO_write_ptr;
  }

  // Counts the bytes that macros have moved since the last call, as the pointers of `f` show. `f` is the
  // stream itself, under its lock, or a copy of it that was made without the lock.
  static void count_macro_bytes(ThreadLog& log, Stream& stream, const FILE& f, int fd) noexcept;
  // Counts the bytes that a fork's child finds in the buffer of a stream that its parent had used: the child
  // writes them as well.
  static void count_inherited_bytes(ThreadLog& log, const FILE& f, int fd, int64_t position) noexcept;

 private:
  static void unlock(void* file) noexcept { funlockfile(static_cast<FILE*>(file)); }
  void note_new_stream(Stream& stream, ThreadLog& log) noexcept;
  int failure() const noexcept { return (file_->_flags & kErrorSeen) != 0 ? errno : 0; }
  void count_kernel_writes(int64_t bytes_to_write) noexcept {
    int64_t bytes = bytes_to_write - unwritten_bytes(*file_);
    if (bytes > 0) {
      if (!had_error_ && (file_->_flags & kErrorSeen) != 0) [[unlikely]] {
        bytes = written_before_failure(bytes);
      }
      note_kernel_written(bytes);
    }
  }
  // Returns how many bytes a failed write has written, at most `at_most`. glibc has discarded the bytes that
  // it could not write, so only the kernel's position in the file shows the number.
  [[gnu::cold]] int64_t written_before_failure(int64_t at_most) const noexcept;
  void count_operation(Operation operation) noexcept {
    if (begin_ticks_ != 0 || segments_wanted()) {
      stream_->last_ticks = ticks();
    }
    operation.end = stream_->last_ticks;
    operation.begin = begin_ticks_ == 0 ? operation.end : begin_ticks_;
    count(*log_, fd_, operation);
  }

  FILE* file_;
  int fd_;
  bool is_locked_ = false;
  bool had_error_ = false;
  ThreadLog* log_ = nullptr;
  Stream* stream_ = nullptr;
  int64_t unread_before_ = 0;
  int64_t unwritten_before_ = 0;
  uint64_t begin_ticks_ = 0;
  _pthread_cleanup_buffer cleanup_;
};

// The kernel's position in the file of `fd`; -1 if it has none. Makes one direct system call.
int64_t kernel_position(int fd) noexcept;
// How many bytes the program received, for calls that do not return this number. It is calculated from the
// state of the buffer before and after the call. It is exact for files. For a pipe it is exact only if the
// call filled the buffer at most once.
int64_t received_bytes(const StreamCall& call, const FILE& file, const BufferState& before) noexcept;

}  // namespace penstock::interpose
