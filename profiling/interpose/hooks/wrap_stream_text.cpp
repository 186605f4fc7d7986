// Formatted text from and to streams, and wide characters.
#include <stdarg.h>
#include <wchar.h>

#include "profiling/interpose/hooks/streams.hpp"
#include "profiling/interpose/hooks/wrap_transfers.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like what they replace

namespace {

int printed(FILE* file, auto call) noexcept {
  OnStream on(file);
  if (!on.watched()) [[unlikely]] {
    return call();
  }
  on.time_it();
  const int bytes = call();
  const std::int64_t held = unwritten(*file) - on.unwritten_before();
  on.was_written(bytes >= 0 ? bytes : held > 0 ? held : 0);
  return bytes;
}

int scanned(FILE* file, auto call) noexcept {
  OnStream on(file);
  if (!on.watched()) [[unlikely]] {
    return call();
  }
  const Before before_it(*file);
  on.time_it();
  const int result = call();
  const int saved = errno;
  on.was_read(received(on, *file, before_it));
  errno = saved;
  return result;
}

// Wide characters: the bytes are those that were decoded or encoded, a buffer at a time, by where the kernel
// is in the file before and after.
auto wide_read(FILE* file, auto call) noexcept {
  OnStream on(file);
  if (!on.watched()) {
    return call();
  }
  const Before before_it(*file);
  const std::int64_t before = kernel_position(file->_fileno);
  on.time_it();
  const auto result = call();
  const int saved = errno;
  const std::int64_t after = before < 0 ? -1 : kernel_position(file->_fileno);
  const std::int64_t bytes = after < before || before < 0
                                 ? received(on, *file, before_it)
                                 : after - before + on.unread_before() - unread(*file);
  if (bytes > 0) {
    on.was_read(bytes);
  } else {
    on.was_nothing();
  }
  errno = saved;
  return result;
}

auto wide_written(FILE* file, auto call) noexcept {
  OnStream on(file);
  if (!on.watched()) {
    return call();
  }
  const std::int64_t before = kernel_position(file->_fileno);
  on.time_it();
  const auto result = call();
  const int saved = errno;
  const std::int64_t after = before < 0 ? -1 : kernel_position(file->_fileno);
  const std::int64_t bytes = (after > before ? after - before : 0) + unwritten(*file) - on.unwritten_before();
  if (bytes > 0) {
    on.was_written(bytes);
  } else {
    on.was_nothing();
  }
  errno = saved;
  return result;
}

}  // namespace

// NOLINTBEGIN(cert-dcl50-cpp): these are variadic
#define PENSTOCK_MORE(last) \
  va_list more;             \
  va_start(more, last);

PENSTOCK_WRAP(int, vfprintf, (FILE * file, const char* format, va_list more)) {
  return printed(file, [&] { return real_vfprintf(file, format, more); });
}
PENSTOCK_WRAP(int, vprintf, (const char* format, va_list more)) {
  return printed(stdout, [&] { return real_vprintf(format, more); });
}
PENSTOCK_WRAP(int, fprintf, (FILE * file, const char* format, ...)) {
  PENSTOCK_MORE(format)
  const int bytes = printed(file, [&] { return real_vfprintf(file, format, more); });
  va_end(more);
  return bytes;
}
PENSTOCK_WRAP(int, printf, (const char* format, ...)) {
  PENSTOCK_MORE(format)
  const int bytes = printed(stdout, [&] { return real_vprintf(format, more); });
  va_end(more);
  return bytes;
}
PENSTOCK_WRAP(int, __vfprintf_chk, (FILE * file, int flag, const char* format, va_list more)) {
  return printed(file, [&] { return real___vfprintf_chk(file, flag, format, more); });
}
PENSTOCK_WRAP(int, __vprintf_chk, (int flag, const char* format, va_list more)) {
  return printed(stdout, [&] { return real___vprintf_chk(flag, format, more); });
}
PENSTOCK_WRAP(int, __fprintf_chk, (FILE * file, int flag, const char* format, ...)) {
  PENSTOCK_MORE(format)
  const int bytes = printed(file, [&] { return real___vfprintf_chk(file, flag, format, more); });
  va_end(more);
  return bytes;
}
PENSTOCK_WRAP(int, __printf_chk, (int flag, const char* format, ...)) {
  PENSTOCK_MORE(format)
  const int bytes = printed(stdout, [&] { return real___vprintf_chk(flag, format, more); });
  va_end(more);
  return bytes;
}

// Straight to a descriptor, whose writes they are.
PENSTOCK_WRAP(int, vdprintf, (int fd, const char* format, va_list more)) {
  return static_cast<int>(
      transfer_on<PENSTOCK_CALL_WRITE>(fd, [&] { return ssize_t{real_vdprintf(fd, format, more)}; }));
}
PENSTOCK_WRAP(int, dprintf, (int fd, const char* format, ...)) {
  PENSTOCK_MORE(format)
  const auto bytes = static_cast<int>(
      transfer_on<PENSTOCK_CALL_WRITE>(fd, [&] { return ssize_t{real_vdprintf(fd, format, more)}; }));
  va_end(more);
  return bytes;
}
PENSTOCK_WRAP(int, __vdprintf_chk, (int fd, int flag, const char* format, va_list more)) {
  return static_cast<int>(transfer_on<PENSTOCK_CALL_WRITE>(
      fd, [&] { return ssize_t{real___vdprintf_chk(fd, flag, format, more)}; }));
}
PENSTOCK_WRAP(int, __dprintf_chk, (int fd, int flag, const char* format, ...)) {
  PENSTOCK_MORE(format)
  const auto bytes = static_cast<int>(transfer_on<PENSTOCK_CALL_WRITE>(
      fd, [&] { return ssize_t{real___vdprintf_chk(fd, flag, format, more)}; }));
  va_end(more);
  return bytes;
}

// What scans, under the names that its versions have in libc. The variadic ones call those that take a list.
#define PENSTOCK_SCAN_FILE(name, list_name, around, character)                             \
  PENSTOCK_WRAP(int, list_name, (FILE * file, const character* format, va_list more)) {    \
    return around(file, [&] { return real_##list_name(file, format, more); });             \
  }                                                                                        \
  PENSTOCK_WRAP(int, name, (FILE * file, const character* format, ...)) {                  \
    PENSTOCK_MORE(format)                                                                  \
    const int result = around(file, [&] { return real_##list_name(file, format, more); }); \
    va_end(more);                                                                          \
    return result;                                                                         \
  }
#define PENSTOCK_SCAN_INPUT(name, list_name)                                           \
  PENSTOCK_WRAP(int, list_name, (const char* format, va_list more)) {                  \
    return scanned(stdin, [&] { return real_##list_name(format, more); });             \
  }                                                                                    \
  PENSTOCK_WRAP(int, name, (const char* format, ...)) {                                \
    PENSTOCK_MORE(format)                                                              \
    const int result = scanned(stdin, [&] { return real_##list_name(format, more); }); \
    va_end(more);                                                                      \
    return result;                                                                     \
  }
PENSTOCK_SCAN_FILE(fscanf, vfscanf, scanned, char)
PENSTOCK_SCAN_FILE(__isoc99_fscanf, __isoc99_vfscanf, scanned, char)
PENSTOCK_SCAN_FILE(__isoc23_fscanf, __isoc23_vfscanf, scanned, char)
PENSTOCK_SCAN_FILE(fwscanf, vfwscanf, wide_read, wchar_t)
PENSTOCK_SCAN_FILE(__isoc99_fwscanf, __isoc99_vfwscanf, wide_read, wchar_t)
PENSTOCK_SCAN_FILE(__isoc23_fwscanf, __isoc23_vfwscanf, wide_read, wchar_t)
PENSTOCK_SCAN_INPUT(scanf, vscanf)
PENSTOCK_SCAN_INPUT(__isoc99_scanf, __isoc99_vscanf)
PENSTOCK_SCAN_INPUT(__isoc23_scanf, __isoc23_vscanf)

#define PENSTOCK_GET_WIDE(name)                                \
  PENSTOCK_WRAP(wint_t, name, (FILE * file)) {                 \
    return wide_read(file, [&] { return real_##name(file); }); \
  }
PENSTOCK_GET_WIDE(fgetwc)
PENSTOCK_GET_WIDE(getwc)
PENSTOCK_GET_WIDE(fgetwc_unlocked)
PENSTOCK_GET_WIDE(getwc_unlocked)
PENSTOCK_GET_WIDE(__wuflow)
PENSTOCK_GET_WIDE(__wunderflow)
PENSTOCK_WRAP(wint_t, getwchar, ()) {
  return wide_read(stdin, [&] { return real_getwchar(); });
}
PENSTOCK_WRAP_TWINS(wchar_t*, fgetws, fgetws_unlocked, (wchar_t * out, int room, FILE* file),
                    wide_read(file, [&] { return real(out, room, file); }))
PENSTOCK_WRAP_TWINS(wchar_t*, __fgetws_chk, __fgetws_unlocked_chk,
                    (wchar_t * out, size_t size, int room, FILE* file),
                    wide_read(file, [&] { return real(out, size, room, file); }))
#define PENSTOCK_PUT_WIDE(name)                                              \
  PENSTOCK_WRAP(wint_t, name, (wchar_t character, FILE * file)) {            \
    return wide_written(file, [&] { return real_##name(character, file); }); \
  }
PENSTOCK_PUT_WIDE(fputwc)
PENSTOCK_PUT_WIDE(putwc)
PENSTOCK_PUT_WIDE(fputwc_unlocked)
PENSTOCK_PUT_WIDE(putwc_unlocked)
PENSTOCK_WRAP(wint_t, __woverflow, (FILE * file, wint_t character)) {
  return wide_written(file, [&] { return real___woverflow(file, character); });
}
PENSTOCK_WRAP(wint_t, putwchar, (wchar_t character)) {
  return wide_written(stdout, [&] { return real_putwchar(character); });
}
PENSTOCK_WRAP_TWINS(int, fputws, fputws_unlocked, (const wchar_t* text, FILE* file),
                    wide_written(file, [&] { return real(text, file); }))
PENSTOCK_WRAP(int, vfwprintf, (FILE * file, const wchar_t* format, va_list more)) {
  return wide_written(file, [&] { return real_vfwprintf(file, format, more); });
}
PENSTOCK_WRAP(int, __vfwprintf_chk, (FILE * file, int flag, const wchar_t* format, va_list more)) {
  return wide_written(file, [&] { return real___vfwprintf_chk(file, flag, format, more); });
}
PENSTOCK_WRAP(int, fwprintf, (FILE * file, const wchar_t* format, ...)) {
  PENSTOCK_MORE(format)
  const int result = wide_written(file, [&] { return real_vfwprintf(file, format, more); });
  va_end(more);
  return result;
}
PENSTOCK_WRAP(int, __fwprintf_chk, (FILE * file, int flag, const wchar_t* format, ...)) {
  PENSTOCK_MORE(format)
  const int result = wide_written(file, [&] { return real___vfwprintf_chk(file, flag, format, more); });
  va_end(more);
  return result;
}
// NOLINTEND(cert-dcl50-cpp)
