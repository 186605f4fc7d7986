// Wrappers of stdio's functions for formatted text and for wide characters.
// Threads, locks, memory and signals: see streams.hpp.
#include <stdarg.h>
#include <wchar.h>

#include "profiling/interpose/hooks/streams.hpp"
#include "profiling/interpose/hooks/wrap_transfers.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace {

int print_and_count(FILE* file, auto call) noexcept {
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) [[unlikely]] {
    return call();
  }
  stream_call.read_clock();
  const int bytes = call();
  const int64_t buffered_bytes = unwritten_bytes(*file) - stream_call.unwritten_before();
  stream_call.after_write(bytes >= 0 ? bytes : buffered_bytes > 0 ? buffered_bytes : 0);
  return bytes;
}

auto scan_and_count(FILE* file, auto call) noexcept {
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) [[unlikely]] {
    return call();
  }
  const BufferState buffer_before(*file);
  stream_call.read_clock();
  const auto result = call();
  const int saved_errno = errno;
  stream_call.after_read(received_bytes(stream_call, *file, buffer_before));
  errno = saved_errno;
  return result;
}

// read_wide() and write_wide() count the bytes that the wide characters have in the file. The number is
// derived from the kernel's position in the file before and after the call.
auto read_wide(FILE* file, auto call) noexcept {
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) {
    return call();
  }
  const BufferState buffer_before(*file);
  const int64_t begin = kernel_position(file->_fileno);
  stream_call.read_clock();
  const auto result = call();
  const int saved_errno = errno;
  const int64_t end = begin < 0 ? -1 : kernel_position(file->_fileno);
  const int64_t bytes = end < begin || begin < 0
                            ? received_bytes(stream_call, *file, buffer_before)
                            : end - begin + stream_call.unread_before() - unread_bytes(*file);
  if (bytes > 0) {
    stream_call.after_read(bytes);
  } else {
    stream_call.after_uncounted();
  }
  errno = saved_errno;
  return result;
}

auto write_wide(FILE* file, auto call) noexcept {
  StreamCall stream_call(file);
  if (!stream_call.is_counted()) {
    return call();
  }
  const int64_t begin = kernel_position(file->_fileno);
  stream_call.read_clock();
  const auto result = call();
  const int saved_errno = errno;
  const int64_t end = begin < 0 ? -1 : kernel_position(file->_fileno);
  const int64_t bytes =
      (end > begin ? end - begin : 0) + unwritten_bytes(*file) - stream_call.unwritten_before();
  if (bytes > 0) {
    stream_call.after_write(bytes);
  } else {
    stream_call.after_uncounted();
  }
  errno = saved_errno;
  return result;
}

// dprintf() writes directly to a descriptor, so it counts as a write of that descriptor.
int print_to_descriptor(int fd, auto call) noexcept {
  return int(transfer_at_position<PENSTOCK_CALL_WRITE>(fd, [&] { return ssize_t{call()}; }));
}

}  // namespace

// Wraps two functions that print or scan by a format. `list_name` takes the values as a va_list. `name` takes
// them one by one and calls the function `list_name`. Both make and count the call by count_on(where, call).
// The last parameter in `parameters` must be `format`. PENSTOCK_BARE removes the parentheses around a list.
#define PENSTOCK_BARE(...) __VA_ARGS__
#define PENSTOCK_FORMATTED(name, list_name, count_on, where, parameters, arguments)                        \
  PENSTOCK_WRAP(int, list_name, (PENSTOCK_BARE parameters, va_list values)) {                              \
    return count_on(where, [&] { return real_##list_name(PENSTOCK_BARE arguments, values); });             \
  }                                                                                                        \
  PENSTOCK_WRAP(int, name, (PENSTOCK_BARE parameters, ...)) {                                              \
    va_list values;                                                                                        \
    va_start(values, format);                                                                              \
    const int result = count_on(where, [&] { return real_##list_name(PENSTOCK_BARE arguments, values); }); \
    va_end(values);                                                                                        \
    return result;                                                                                         \
  }
PENSTOCK_FORMATTED(fprintf, vfprintf, print_and_count, file, (FILE * file, const char* format),
                   (file, format))
PENSTOCK_FORMATTED(printf, vprintf, print_and_count, stdout, (const char* format), (format))
PENSTOCK_FORMATTED(__fprintf_chk, __vfprintf_chk, print_and_count, file,
                   (FILE * file, int flag, const char* format), (file, flag, format))
PENSTOCK_FORMATTED(__printf_chk, __vprintf_chk, print_and_count, stdout, (int flag, const char* format),
                   (flag, format))
PENSTOCK_FORMATTED(dprintf, vdprintf, print_to_descriptor, fd, (int fd, const char* format), (fd, format))
PENSTOCK_FORMATTED(__dprintf_chk, __vdprintf_chk, print_to_descriptor, fd,
                   (int fd, int flag, const char* format), (fd, flag, format))
PENSTOCK_FORMATTED(fwprintf, vfwprintf, write_wide, file, (FILE * file, const wchar_t* format),
                   (file, format))
PENSTOCK_FORMATTED(__fwprintf_chk, __vfwprintf_chk, write_wide, file,
                   (FILE * file, int flag, const wchar_t* format), (file, flag, format))
PENSTOCK_FORMATTED(wprintf, vwprintf, write_wide, stdout, (const wchar_t* format), (format))
PENSTOCK_FORMATTED(__wprintf_chk, __vwprintf_chk, write_wide, stdout, (int flag, const wchar_t* format),
                   (flag, format))
PENSTOCK_FORMATTED(fscanf, vfscanf, scan_and_count, file, (FILE * file, const char* format), (file, format))
PENSTOCK_FORMATTED(__isoc99_fscanf, __isoc99_vfscanf, scan_and_count, file, (FILE * file, const char* format),
                   (file, format))
PENSTOCK_FORMATTED(__isoc23_fscanf, __isoc23_vfscanf, scan_and_count, file, (FILE * file, const char* format),
                   (file, format))
PENSTOCK_FORMATTED(fwscanf, vfwscanf, read_wide, file, (FILE * file, const wchar_t* format), (file, format))
PENSTOCK_FORMATTED(__isoc99_fwscanf, __isoc99_vfwscanf, read_wide, file, (FILE * file, const wchar_t* format),
                   (file, format))
PENSTOCK_FORMATTED(__isoc23_fwscanf, __isoc23_vfwscanf, read_wide, file, (FILE * file, const wchar_t* format),
                   (file, format))
PENSTOCK_FORMATTED(scanf, vscanf, scan_and_count, stdin, (const char* format), (format))
PENSTOCK_FORMATTED(__isoc99_scanf, __isoc99_vscanf, scan_and_count, stdin, (const char* format), (format))
PENSTOCK_FORMATTED(__isoc23_scanf, __isoc23_vscanf, scan_and_count, stdin, (const char* format), (format))
PENSTOCK_FORMATTED(wscanf, vwscanf, read_wide, stdin, (const wchar_t* format), (format))
PENSTOCK_FORMATTED(__isoc99_wscanf, __isoc99_vwscanf, read_wide, stdin, (const wchar_t* format), (format))
PENSTOCK_FORMATTED(__isoc23_wscanf, __isoc23_vwscanf, read_wide, stdin, (const wchar_t* format), (format))
// NOLINTEND(cert-dcl50-cpp)
PENSTOCK_WRAP(int, __vfscanf, (FILE * file, const char* format, va_list values)) {
  return scan_and_count(file, [&] { return real___vfscanf(file, format, values); });
}

// gets() removes the end of the line, and getw() may meet the end of the file inside a word. So the bytes are
// those that were taken from the buffer.
PENSTOCK_WRAP(char*, gets, (char* out)) {
  return scan_and_count(stdin, [&] { return real_gets(out); });
}
PENSTOCK_WRAP(char*, __gets_chk, (char* out, size_t room)) {
  return scan_and_count(stdin, [&] { return real___gets_chk(out, room); });
}
PENSTOCK_WRAP(int, getw, (FILE * file)) {
  return scan_and_count(file, [&] { return real_getw(file); });
}
PENSTOCK_WRAP(int, putw, (int word, FILE* file)) {
  const int bytes =
      print_and_count(file, [&] { return real_putw(word, file) == 0 ? int(sizeof(word)) : -1; });
  return bytes < 0 ? EOF : 0;
}

#define PENSTOCK_GET_WIDE(name)                                \
  PENSTOCK_WRAP(wint_t, name, (FILE * file)) {                 \
    return read_wide(file, [&] { return real_##name(file); }); \
  }
PENSTOCK_GET_WIDE(fgetwc)
PENSTOCK_GET_WIDE(getwc)
PENSTOCK_GET_WIDE(fgetwc_unlocked)
PENSTOCK_GET_WIDE(getwc_unlocked)
PENSTOCK_GET_WIDE(__wuflow)
PENSTOCK_GET_WIDE(__wunderflow)
PENSTOCK_WRAP_TWINS(wint_t, getwchar, getwchar_unlocked, (), read_wide(stdin, [&] { return real(); }))
PENSTOCK_WRAP_TWINS(wchar_t*, fgetws, fgetws_unlocked, (wchar_t * out, int room, FILE* file),
                    read_wide(file, [&] { return real(out, room, file); }))
PENSTOCK_WRAP_TWINS(wchar_t*, __fgetws_chk, __fgetws_unlocked_chk,
                    (wchar_t * out, size_t size, int room, FILE* file),
                    read_wide(file, [&] { return real(out, size, room, file); }))
#define PENSTOCK_PUT_WIDE(name)                                            \
  PENSTOCK_WRAP(wint_t, name, (wchar_t character, FILE * file)) {          \
    return write_wide(file, [&] { return real_##name(character, file); }); \
  }
PENSTOCK_PUT_WIDE(fputwc)
PENSTOCK_PUT_WIDE(putwc)
PENSTOCK_PUT_WIDE(fputwc_unlocked)
PENSTOCK_PUT_WIDE(putwc_unlocked)
PENSTOCK_WRAP(wint_t, __woverflow, (FILE * file, wint_t character)) {
  return write_wide(file, [&] { return real___woverflow(file, character); });
}
PENSTOCK_WRAP_TWINS(wint_t, putwchar, putwchar_unlocked, (wchar_t character),
                    write_wide(stdout, [&] { return real(character); }))
PENSTOCK_WRAP_TWINS(int, fputws, fputws_unlocked, (const wchar_t* text, FILE* file),
                    write_wide(file, [&] { return real(text, file); }))
