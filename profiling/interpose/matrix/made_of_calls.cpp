// A library that replaces functions of stdio and implements each with other wrapped functions, as Darshan
// calls ftell() before and after fscanf().
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

extern "C" {

#define PENSTOCK_REPLACE(result, name, parameters)  \
  result replaced_##name parameters __asm__(#name); \
  __attribute__((visibility("default"))) result replaced_##name parameters

int scan(const char* name, FILE* file, const char* format, va_list values) {
  auto* next = reinterpret_cast<int (*)(FILE*, const char*, va_list)>(dlsym(RTLD_NEXT, name));
  ftell(file);
  const int result = next(file, format, values);
  ftell(file);
  return result;
}
PENSTOCK_REPLACE(int, vfscanf, (FILE * file, const char* format, va_list values)) {
  return scan("vfscanf", file, format, values);
}
PENSTOCK_REPLACE(int, __isoc99_vfscanf, (FILE * file, const char* format, va_list values)) {
  return scan("__isoc99_vfscanf", file, format, values);
}
PENSTOCK_REPLACE(int, __isoc23_vfscanf, (FILE * file, const char* format, va_list values)) {
  return scan("__isoc23_vfscanf", file, format, values);
}
PENSTOCK_REPLACE(char*, fgets, (char* out, int room, FILE* file)) {
  int length = 0;
  for (int byte = 0; length < room - 1 && byte != '\n' && (byte = getc(file)) != EOF;) {
    out[length++] = char(byte);
  }
  out[length] = 0;
  return length == 0 ? nullptr : out;
}
PENSTOCK_REPLACE(size_t, fwrite, (const void* from, size_t size, size_t count, FILE* file)) {
  for (size_t i = 0; i < size * count; ++i) {
    fputc(static_cast<const unsigned char*>(from)[i], file);
  }
  return count;
}
PENSTOCK_REPLACE(ssize_t, pread, (int fd, void* to, size_t bytes, off_t offset)) {
  const off_t position = lseek(fd, 0, SEEK_CUR);
  lseek(fd, offset, SEEK_SET);
  const ssize_t result = read(fd, to, bytes);
  lseek(fd, position, SEEK_SET);
  return result;
}
}
