// Wrappers of stdio's functions that open, close, position and flush streams.
//
// Threads: any thread of the program.
// Locks: StreamCall holds the FILE's lock around the call. But close_and_count() releases it before the call,
// because fclose() frees the FILE.
// Memory: nothing is allocated on the program's heap. errno is that of the call.
// Signals: see streams.hpp.
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "profiling/interpose/hooks/processes.hpp"
#include "profiling/interpose/hooks/streams.hpp"
#include "profiling/interpose/writer/system.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace {

int flags_of(const char* mode) noexcept {
  const bool reads_and_writes = strchr(mode, '+') != nullptr;
  switch (*mode) {
    case 'r':
      return reads_and_writes ? O_RDWR : O_RDONLY;
    case 'a':
      return (reads_and_writes ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND;
    default:
      return (reads_and_writes ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC;
  }
}

// Notes a new stream, whose pointers have not moved yet. If the stream appends, its position is the end of
// its file.
void note_opened_stream(FILE* file) noexcept {
  const int saved_errno = errno;
  if (file != nullptr && descriptor_of(*file) >= 0) {
    if (Stream* stream = stream_at(descriptor_of(*file))) {
      stream->file = nullptr;
    }
    const StreamCall stream_call(file);
  }
  errno = saved_errno;
}

FILE* open_and_count(const char* path, const char* mode, auto call) noexcept {
  return call_and_time(PENSTOCK_CALL_OPEN, call, [=](ThreadLog& log, FILE* file, Operation& operation) {
    const int saved_errno = errno;
    operation.layer = PENSTOCK_STDIO;
    operation.failed = file == nullptr ? saved_errno : 0;
    count_open(log, AT_FDCWD, path, flags_of(mode), file == nullptr ? -1 : file->_fileno, operation);
    note_opened_stream(file);
    errno = saved_errno;
  });
}

// Notes a stream without a name: a temporary file, or a pipe to another program.
FILE* note_unnamed_stream(FILE* file) noexcept {
  if (file != nullptr && !log_suspended()) {
    forget(file->_fileno);
    note_opened_stream(file);
  }
  return file;
}

bool has_failed(int result) noexcept {
  return result == -1;
}
bool has_failed(const FILE* result) noexcept {
  return result == nullptr;
}

// Makes and counts a call that closes a stream. If `opens_again` is true, the call then opens the stream
// again. The call also writes the bytes that are still in the buffer. If the buffer has wide characters, the
// call first converts them to bytes; how many bytes these are can only be seen from the file's position.
auto close_and_count(FILE* file, bool opens_again, auto call) noexcept {
  const int fd = descriptor_of(*file);
  ThreadLog* log = fd < 0 ? nullptr : thread_log();
  if (log == nullptr) {
    if (fd >= 0 && !opens_again && !log_suspended()) {
      forget(fd);
    }
    return call();
  }
  int64_t buffered_bytes = 0;
  int64_t position = 0;
  {
    const StreamCall stream_call(file);
    if (stream_call.is_counted()) {
      buffered_bytes = stream_call.unwritten_before();
      position = stream_call.stream().position;
      stream_call.stream().file = nullptr;
    }
  }
  const bool is_wide = file->_mode > 0;
  penstock_counters* counters =
      current_counters(*log, fd, PENSTOCK_STDIO, is_wide ? PENSTOCK_CALL_WRITE : PENSTOCK_CALL_CLOSE);
  // The file's position is also needed after the close. It can then be read through this duplicate of the
  // descriptor.
  const long duplicate_fd = is_wide ? system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0) : -1;
  const int64_t begin_position = duplicate_fd < 0 ? -1 : kernel_position(fd);
  if (!opens_again) {
    forget(fd);
  }
  Operation operation{.call = PENSTOCK_CALL_CLOSE, .layer = PENSTOCK_STDIO, .begin = ticks()};
  const auto result = call();
  operation.end = ticks();
  const int saved_errno = errno;
  if (has_failed(result)) {
    operation.failed = saved_errno;
    buffered_bytes = 0;  // how many of these bytes were written is not known, so none is counted
  }
  int64_t wide_bytes = 0;  // written bytes of wide characters
  if (duplicate_fd >= 0) {
    const int64_t end_position = kernel_position(int(duplicate_fd));
    wide_bytes =
        end_position > begin_position + buffered_bytes ? end_position - begin_position - buffered_bytes : 0;
    system_call(SYS_close, duplicate_fd);
  }
  add_kernel_written(*log, buffered_bytes + wide_bytes);
  if (counters != nullptr) {
    if (wide_bytes > 0) {
      count_in_counters(*log, *counters,
                        {.call = PENSTOCK_CALL_WRITE,
                         .layer = PENSTOCK_STDIO,
                         .offset = position,
                         .length = wide_bytes,
                         .begin = operation.end,
                         .end = operation.end});
    }
    count_in_counters(*log, *counters, operation);
  }
  errno = saved_errno;
  return result;
}

FILE* reopen_and_count(const char* path, const char* mode, FILE* file, auto call) noexcept {
  FILE* reopened = close_and_count(
      file, path == nullptr, [&] { return path == nullptr ? call() : open_and_count(path, mode, call); });
  if (path == nullptr) {
    note_opened_stream(reopened);
  }
  return reopened;
}

// Finds out how many bytes a seek has read. To reach a position, glibc reads the block of the file that has
// this position, from the start of the block. Then it sets _offset to the end of what it read.
// If the position is in the buffer already, glibc reads nothing and leaves the buffer and _offset as they
// are, unless the stream was writing. If the file ends before the position, glibc reads the part of the block
// that exists and discards it.
class BytesReadBySeek {
 public:
  BytesReadBySeek(const FILE& f, int whence) noexcept
      : buffer_end_(end_in_buffer(f)),
        offset_(f._offset),
        was_writing_((f._flags & kCurrentlyPutting) != 0),
        may_read_((f._flags & kNoReads) == 0 && (whence != SEEK_CUR || f._offset >= 0)) {}
  // How many bytes the seek has read. Called after a seek that succeeded.
  int64_t bytes(const FILE& f) const noexcept {
    const int64_t filled_bytes = f._IO_read_end - f._IO_buf_base;
    const int64_t block_bytes = f._IO_buf_end - f._IO_buf_base;
    if (filled_bytes > 0) {
      // If the seek leads to the end of the buffer, glibc reads again.
      const bool at_end = f._IO_read_ptr == f._IO_read_end;
      return was_writing_ || at_end || f._offset != offset_ || f._IO_read_end != buffer_end_ ? filled_bytes
                                                                                             : 0;
    }
    if (!may_read_ || f._offset < 0 || f._offset % block_bytes == 0) {
      return 0;
    }
    struct stat status {};
    const int64_t begin = f._offset / block_bytes * block_bytes;
    const bool is_regular =
        system_call(SYS_fstat, f._fileno, as_argument(&status)) == 0 && S_ISREG(status.st_mode);
    return is_regular && status.st_size > begin && status.st_size < f._offset ? status.st_size - begin : 0;
  }

 private:
  const char* buffer_end_;
  int64_t offset_;
  bool was_writing_;
  bool may_read_;
};

int seek_and_count(FILE* file, int whence, auto call) noexcept {
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) {
    return call();
  }
  const BytesReadBySeek read_by_seek(*file, whence);
  stream_call.read_clock();
  const int result = call();
  const int saved_errno = errno;
  if (const int64_t bytes = result == 0 ? read_by_seek.bytes(*file) : 0; bytes > 0) {
    stream_call.note_kernel_read(bytes);
  }
  stream_call.after_other(PENSTOCK_CALL_SEEK, result != 0 ? saved_errno : 0);
  if (result == 0) {
    const int64_t position = file->_offset >= 0 ? file->_offset : kernel_position(file->_fileno);
    stream_call.stream().position = position < 0 ? 0 : position - unread_bytes(*file);
    stream_call.stream().pushed_back_bytes = 0;
    if (Description* description = description_of(file->_fileno)) {
      description->position.store(position < 0 ? 0 : position, std::memory_order_relaxed);
    }
  }
  errno = saved_errno;
  return result;
}

auto count_tell(FILE* file, auto call) noexcept {
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) {
    return call();
  }
  stream_call.read_clock();
  const auto result = call();
  stream_call.after_other(PENSTOCK_CALL_OTHER, 0);
  return result;
}

// Makes and counts fflush(), which gives the bytes in the buffer to the kernel. It counts as a metadata
// operation of kind `other`. If there were such bytes, its time is added to the time of writes. It does not
// count as a sync, because the kernel is not asked to write to the device. fflush(NULL) is not counted
// itself; only the bytes that macros have moved are counted.
int flush_and_count(FILE* file, auto call) noexcept {
  if (file == nullptr) {
    count_macro_bytes_of_all();
    const int result = call();
    count_macro_bytes_of_all();
    return result;
  }
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) {
    return call();
  }
  const int64_t begin_position = file->_mode > 0 ? kernel_position(file->_fileno) : -1;
  const uint64_t begin = ticks();
  const int result = call();
  const uint64_t end = ticks();
  const int saved_errno = errno;
  if (stream_call.unwritten_before() > 0) {
    if (penstock_counters* counters =
            current_counters(stream_call.log(), file->_fileno, PENSTOCK_STDIO, PENSTOCK_CALL_WRITE)) {
      counters->write_ticks += end - begin;
    }
  }
  if (begin_position >= 0) {
    const int64_t wide_bytes =
        kernel_position(file->_fileno) - begin_position - stream_call.unwritten_before();
    if (wide_bytes > 0) {
      stream_call.after_write(wide_bytes);
    }
  }
  stream_call.after_other(PENSTOCK_CALL_OTHER, result != 0 ? saved_errno : 0);
  errno = saved_errno;
  return result;
}

}  // namespace

PENSTOCK_WRAP_TWINS(FILE*, fopen, fopen64, (const char* path, const char* mode),
                    open_and_count(path, mode, [&] { return real(path, mode); }))
PENSTOCK_WRAP_TWINS(FILE*, freopen, freopen64, (const char* path, const char* mode, FILE* file),
                    reopen_and_count(path, mode, file, [&] { return real(path, mode, file); }))
PENSTOCK_WRAP(FILE*, fdopen, (int fd, const char* mode)) {
  FILE* file = real_fdopen(fd, mode);
  note_opened_stream(file);
  return file;
}
PENSTOCK_WRAP_TWINS(FILE*, tmpfile, tmpfile64, (), note_unnamed_stream(real()))
PENSTOCK_WRAP(FILE*, popen, (const char* command, const char* mode)) {
  note_shell();
  return note_unnamed_stream(real_popen(command, mode));
}
PENSTOCK_WRAP_TWINS(int, pclose, fclose, (FILE * file),
                    close_and_count(file, false, [&] { return real(file); }))

PENSTOCK_WRAP_TWINS(int, fflush, fflush_unlocked, (FILE * file),
                    flush_and_count(file, [&] { return real(file); }))

PENSTOCK_WRAP(int, fseek, (FILE * file, long offset, int whence)) {
  return seek_and_count(file, whence, [&] { return real_fseek(file, offset, whence); });
}
PENSTOCK_WRAP_TWINS(int, fseeko, fseeko64, (FILE * file, off64_t offset, int whence),
                    seek_and_count(file, whence, [&] { return real(file, offset, whence); }))
PENSTOCK_WRAP(int, fsetpos, (FILE * file, const fpos_t* position)) {
  return seek_and_count(file, SEEK_SET, [&] { return real_fsetpos(file, position); });
}
PENSTOCK_WRAP(int, fsetpos64, (FILE * file, const fpos64_t* position)) {
  return seek_and_count(file, SEEK_SET, [&] { return real_fsetpos64(file, position); });
}
PENSTOCK_WRAP(void, rewind, (FILE * file)) {
  seek_and_count(file, SEEK_SET, [&] {
    real_rewind(file);
    return 0;
  });
}
PENSTOCK_WRAP(int, fgetpos, (FILE * file, fpos_t* position)) {
  return count_tell(file, [&] { return real_fgetpos(file, position); });
}
PENSTOCK_WRAP(int, fgetpos64, (FILE * file, fpos64_t* position)) {
  return count_tell(file, [&] { return real_fgetpos64(file, position); });
}
PENSTOCK_WRAP(long, ftell, (FILE * file)) {
  return count_tell(file, [&] { return real_ftell(file); });
}
PENSTOCK_WRAP_TWINS(off64_t, ftello, ftello64, (FILE * file), count_tell(file, [&] { return real(file); }))
