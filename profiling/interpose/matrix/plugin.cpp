// A library that penstock_profile_busy loads while the profiler is attached.
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>

extern "C" __attribute__((visibility("default"))) size_t penstock_plugin_read(const char* path,
                                                                              size_t count) {
  char bytes[4096];
  const int fd = open(path, O_RDONLY);
  size_t total_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    const ssize_t bytes_read = pread(fd, bytes, sizeof bytes, 0);
    total_bytes += bytes_read > 0 ? size_t(bytes_read) : 0;
  }
  close(fd);
  return total_bytes;
}
