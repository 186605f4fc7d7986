// Wrappers of stdio's functions that read and write bytes: fread(), fgets(), getline(), getc() and similar
// ones.
//
// Threads: any thread of the program.
// Locks: BufferFastPath, read_byte() and write_byte() hold the FILE's lock (StreamLock) while they use the
// buffer. In all other cases StreamCall holds it, also during the program's call.
// Memory: nothing is allocated on the program's heap.
// Signals: see streams.hpp.
#include <stdint.h>
#include <string.h>

#include "profiling/interpose/hooks/streams.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace {

// Holds the lock of a stream as long as this object exists, if there may be other threads. Used by code that
// changes the stream's buffer itself, without libc's stdio.
class StreamLock {
 public:
  explicit StreamLock(FILE* file) noexcept
      : file_(may_have_threads() && (file->_flags & kProgramLocks) == 0 ? file : nullptr) {
    if (file_ != nullptr) {
      flockfile(file_);
    }
  }
  ~StreamLock() {
    if (file_ != nullptr) {
      funlockfile(file_);
    }
  }
  StreamLock(const StreamLock&) = delete;
  StreamLock& operator=(const StreamLock&) = delete;

 private:
  FILE* file_;
};

// The fast path: makes and counts a call that needs only the buffer and not the kernel. It copies the bytes
// itself, instead of glibc, and uses the cached counters of a file that this thread has just used. StreamCall
// handles all other cases.
template <penstock_call kCall>
class BufferFastPath {
 public:
  [[gnu::always_inline]] explicit BufferFastPath(FILE* file) noexcept : lock_(file) {
    ThreadLog* log = own_log;
    if (log == nullptr) [[unlikely]] {
      return;
    }
    const int fd = file->_fileno;
    Stream* stream = known_stream(fd);
    const Description* description = description_of(fd);
    // The fast path is not used
    // - if the stream or its descriptor is unknown;
    // - if a macro has moved the pointers since the last call, or bytes were pushed back (ungetc());
    // - in a handler that interrupted an update of its own thread (Update, counting.hpp);
    // - while segments are recorded.
    // The second `if` below checks that the cached counters are those of this file, and that none would
    // overflow.
    if (stream == nullptr || description == nullptr || stream->file != file ||
        stream->generation != stream_generation || stream->read_ptr != file->_IO_read_ptr ||
        stream->write_ptr != file->_IO_write_ptr || stream->pushed_back_bytes != 0 ||
        (file->_flags & kInBackupBuffer) != 0 || log->update_mark != nullptr || segments_wanted())
        [[unlikely]] {
      return;
    }
    const ThreadLog::Cached& cached = cache_entry(*log, fd, PENSTOCK_STDIO);
    if (cached.tag != cache_tag(description->serial.load(std::memory_order_relaxed), PENSTOCK_STDIO) ||
        cached.counters == nullptr || !can_count(*cached.counters, kCall)) [[unlikely]] {
      return;
    }
    log_ = log;
    stream_ = stream;
    counters_ = cached.counters;
  }
  bool is_usable() const noexcept { return stream_ != nullptr; }
  [[gnu::always_inline]] void read(FILE* file, void* out, size_t bytes) noexcept {
    memcpy(out, file->_IO_read_ptr, bytes);
    stream_->read_ptr = file->_IO_read_ptr += bytes;
    const Update update(*log_);
    add_read(*counters_, stream_->position, int64_t(bytes), stream_->last_ticks, stream_->last_ticks);
    stream_->position += int64_t(bytes);
  }
  void write(FILE* file, const void* data, size_t bytes) noexcept {
    memcpy(file->_IO_write_ptr, data, bytes);
    stream_->write_ptr = file->_IO_write_ptr += bytes;
    const Update update(*log_);
    add_write(*counters_, stream_->position, int64_t(bytes), stream_->last_ticks, stream_->last_ticks);
    stream_->position += int64_t(bytes);
  }

 private:
  const StreamLock lock_;
  ThreadLog* log_ = nullptr;
  Stream* stream_ = nullptr;
  penstock_counters* counters_ = nullptr;
};

size_t bytes_in_buffer(const FILE* file) noexcept {
  return size_t(file->_IO_read_end - file->_IO_read_ptr);
}
size_t free_in_buffer(const FILE* file) noexcept {  // always 0 for streams that write line by line
  return file->_IO_write_end > file->_IO_write_ptr ? size_t(file->_IO_write_end - file->_IO_write_ptr) : 0;
}

// Makes and counts fread(). glibc is asked for single bytes instead of items, so that the number of bytes is
// known even if the file ends inside an item. The program gets the same bytes.
size_t read_items(FILE* file, void* out, size_t room, size_t size, size_t count, auto call) noexcept {
  size_t bytes = 0;
  if (__builtin_mul_overflow(size, count, &bytes) || bytes == 0 || bytes > room) [[unlikely]] {
    return call(size, count);
  }
  if (bytes <= bytes_in_buffer(file)) {
    if (BufferFastPath<PENSTOCK_CALL_READ> fast_path(file);
        fast_path.is_usable() && bytes <= bytes_in_buffer(file)) [[likely]] {
      fast_path.read(file, out, bytes);
      return count;
    }
  }
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) {
    return call(size, count);
  }
  stream_call.read_clock_for_read(bytes);
  const size_t bytes_read = call(1, bytes);
  stream_call.after_read(int64_t(bytes_read));
  return bytes_read == bytes ? count : bytes_read / size;
}

size_t write_items(FILE* file, const void* data, size_t size, size_t count, auto call) noexcept {
  size_t bytes = 0;
  if (__builtin_mul_overflow(size, count, &bytes) || bytes == 0) [[unlikely]] {
    return call(size, count);
  }
  if (bytes <= free_in_buffer(file)) {
    if (BufferFastPath<PENSTOCK_CALL_WRITE> fast_path(file);
        fast_path.is_usable() && bytes <= free_in_buffer(file)) [[likely]] {
      fast_path.write(file, data, bytes);
      return count;
    }
  }
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) {
    return call(size, count);
  }
  stream_call.read_clock_for_write(bytes);
  const size_t bytes_written = call(1, bytes);
  stream_call.after_write(int64_t(bytes_written));
  return bytes_written == bytes ? count : bytes_written / size;
}

// Makes and counts fgets() or a similar call, which reads a line of at most `room` - 1 bytes and puts a NUL
// after it. `out` has `size` bytes (SIZE_MAX: not known). The line may contain NULs itself, so strlen() does
// not always show how many bytes were read.
char* read_line(FILE* file, char* out, size_t size, size_t room, auto call) noexcept {
  if (room > size) [[unlikely]] {
    return call();  // the buffer is too small: the fortified function ends the program
  }
  if (room > 1 && bytes_in_buffer(file) != 0) {
    if (BufferFastPath<PENSTOCK_CALL_READ> fast_path(file); fast_path.is_usable()) [[likely]] {
      const size_t available = bytes_in_buffer(file);
      const void* newline = memchr(file->_IO_read_ptr, '\n', available < room - 1 ? available : room - 1);
      if (newline != nullptr) [[likely]] {
        const auto bytes = size_t(static_cast<const char*>(newline) - file->_IO_read_ptr) + 1;
        fast_path.read(file, out, bytes);
        out[bytes] = 0;
        return out;
      }
    }
  }
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) [[unlikely]] {
    return call();
  }
  const BufferState buffer_before(*file);
  stream_call.read_clock_for_read(room - 1);
  char* line = call();
  int64_t bytes = 0;
  if (line != nullptr) {
    const auto text_bytes = int64_t(strlen(line));
    bytes = received_bytes(stream_call, *file, buffer_before);
    bytes = bytes < text_bytes || bytes >= int64_t(room) ? text_bytes : bytes;
  }
  stream_call.after_read(bytes);
  return line;
}

ssize_t read_delimited(FILE* file, auto call) noexcept {
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) [[unlikely]] {
    return call();
  }
  stream_call.read_clock();
  const ssize_t bytes = call();
  stream_call.after_read(bytes < 0 ? 0 : bytes);
  return bytes;
}

// Makes and counts a call that reads one byte. If the buffer has bytes, it takes one as the macros do: it
// only moves the pointer, and the next call counts the byte.
int read_byte(FILE* file, auto call) noexcept {
  if (file->_IO_read_ptr < file->_IO_read_end) [[likely]] {
    const StreamLock lock(file);
    if (file->_IO_read_ptr < file->_IO_read_end) [[likely]] {
      return static_cast<unsigned char>(*file->_IO_read_ptr++);
    }
  }
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) {
    return call();
  }
  stream_call.read_clock();
  const int byte = call();
  stream_call.after_read(byte == EOF ? 0 : 1);
  return byte;
}

int write_byte(FILE* file, int byte, auto call) noexcept {
  if (file->_IO_write_ptr < file->_IO_write_end) [[likely]] {
    const StreamLock lock(file);
    if (file->_IO_write_ptr < file->_IO_write_end) [[likely]] {
      return static_cast<unsigned char>(*file->_IO_write_ptr++ = char(byte));
    }
  }
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) {
    return call();
  }
  stream_call.read_clock();
  const int result = call();
  stream_call.after_write(result == EOF ? 0 : 1);
  return result;
}

int write_text(FILE* file, const char* text, size_t extra_bytes, auto call) noexcept {
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) [[unlikely]] {
    return call();
  }
  const size_t bytes = strlen(text) + extra_bytes;
  stream_call.read_clock_for_write(bytes);
  const int result = call();
  const int64_t buffered_bytes = unwritten_bytes(*file) - stream_call.unwritten_before();
  stream_call.after_write(result != EOF ? int64_t(bytes) : buffered_bytes > 0 ? buffered_bytes : 0);
  return result;
}

}  // namespace

PENSTOCK_WRAP_TWINS(size_t, fread, fread_unlocked, (void* out, size_t size, size_t count, FILE* file),
                    read_items(file, out, SIZE_MAX, size, count,
                               [&](size_t s, size_t n) { return real(out, s, n, file); }))
PENSTOCK_WRAP_TWINS(size_t, __fread_chk, __fread_unlocked_chk,
                    (void* out, size_t room, size_t size, size_t count, FILE* file),
                    read_items(file, out, room, size, count,
                               [&](size_t s, size_t n) { return real(out, room, s, n, file); }))
PENSTOCK_WRAP_TWINS(size_t, fwrite, fwrite_unlocked,
                    (const void* data, size_t size, size_t count, FILE* file),
                    write_items(file, data, size, count,
                                [&](size_t s, size_t n) { return real(data, s, n, file); }))

PENSTOCK_WRAP_TWINS(char*, fgets, fgets_unlocked, (char* out, int room, FILE* file),
                    read_line(file, out, SIZE_MAX, size_t(room), [&] { return real(out, room, file); }))
PENSTOCK_WRAP_TWINS(char*, __fgets_chk, __fgets_unlocked_chk, (char* out, size_t size, int room, FILE* file),
                    read_line(file, out, size, size_t(room), [&] { return real(out, size, room, file); }))
PENSTOCK_WRAP(ssize_t, getline, (char** line, size_t* room, FILE* file)) {
  return read_delimited(file, [&] { return real_getline(line, room, file); });
}
PENSTOCK_WRAP_TWINS(ssize_t, getdelim, __getdelim, (char** line, size_t* room, int delimiter, FILE* file),
                    read_delimited(file, [&] { return real(line, room, delimiter, file); }))

#define PENSTOCK_GET_BYTE(name)                                \
  PENSTOCK_WRAP(int, name, (FILE * file)) {                    \
    return read_byte(file, [&] { return real_##name(file); }); \
  }
PENSTOCK_GET_BYTE(getc)
PENSTOCK_GET_BYTE(fgetc)
PENSTOCK_GET_BYTE(_IO_getc)
PENSTOCK_GET_BYTE(getc_unlocked)
PENSTOCK_GET_BYTE(fgetc_unlocked)
PENSTOCK_WRAP_TWINS(int, getchar, getchar_unlocked, (), read_byte(stdin, [&] { return real(); }))
// The getc macros call these two functions when the buffer is empty. Both fill the buffer, but only __uflow()
// takes a byte from it.
PENSTOCK_GET_BYTE(__uflow)
PENSTOCK_WRAP(int, __underflow, (FILE * file)) {
  StreamCall stream_call(file);
  const int byte = real___underflow(file);
  if (stream_call.is_counted()) {
    if (const int64_t more_bytes = unread_bytes(*file) - stream_call.unread_before(); more_bytes > 0) {
      stream_call.note_kernel_read(more_bytes);
    }
    stream_call.after_uncounted();
  }
  return byte;
}
PENSTOCK_WRAP(int, ungetc, (int byte, FILE* file)) {
  StreamCall stream_call(file);
  const int result = real_ungetc(byte, file);
  if (stream_call.is_counted()) {
    if (result != EOF) {
      stream_call.stream().pushed_back_bytes += 1;
      stream_call.stream().position -= 1;
    }
    stream_call.after_uncounted();
  }
  return result;
}

#define PENSTOCK_PUT_BYTE(name)                                             \
  PENSTOCK_WRAP(int, name, (int byte, FILE* file)) {                        \
    return write_byte(file, byte, [&] { return real_##name(byte, file); }); \
  }
PENSTOCK_PUT_BYTE(putc)
PENSTOCK_PUT_BYTE(fputc)
PENSTOCK_PUT_BYTE(_IO_putc)
PENSTOCK_PUT_BYTE(putc_unlocked)
PENSTOCK_PUT_BYTE(fputc_unlocked)
PENSTOCK_WRAP_TWINS(int, putchar, putchar_unlocked, (int byte),
                    write_byte(stdout, byte, [&] { return real(byte); }))
PENSTOCK_WRAP(int, __overflow, (FILE * file, int byte)) {
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) {
    return real___overflow(file, byte);
  }
  stream_call.read_clock();
  const int result = real___overflow(file, byte);
  if (byte == EOF) {
    stream_call.after_uncounted();
  } else {
    stream_call.after_write(result == EOF ? 0 : 1);
  }
  return result;
}

PENSTOCK_WRAP_TWINS(int, fputs, fputs_unlocked, (const char* text, FILE* file),
                    write_text(file, text, 0, [&] { return real(text, file); }))
PENSTOCK_WRAP(int, puts, (const char* text)) {
  return write_text(stdout, text, 1, [&] { return real_puts(text); });
}
