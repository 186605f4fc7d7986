// Reads /proc about this process.
//
// Threads: any thread.
// Locks: the caller holds file_lock, or no other thread records. own_process.hpp names one exception.
// Memory: buffers on the stack.
// Forks: a fork's child calls these functions too. So they call no function of libc that takes a lock or
// allocates.
#include "profiling/interpose/writer/own_process.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "profiling/interpose/writer/session_file.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

// Reads a file in /proc by direct system calls. The descriptor is open only during this call, and is closed
// on exec. EINTR is not handled, because reading /proc never fails with EINTR.
size_t read_text(const char* path, char* to, size_t room) noexcept {
  const long fd = system_call(SYS_openat, AT_FDCWD, as_argument(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  size_t total = 0;
  while (total < room) {
    const long n = system_call(SYS_read, fd, as_argument(to + total), long(room - total));
    if (n <= 0) {
      break;
    }
    total += size_t(n);
  }
  system_call(SYS_close, fd);
  file.own_read_bytes += total;
  file.begin_read_bytes += total;
  return total;
}

bool read_kernel_io(penstock_kernel_io& io) noexcept {
  char text[512] = {};
  if (read_text("/proc/self/io", text, sizeof(text) - 1) == 0) {
    return false;
  }
  const auto counter_of = [&text](const char* name) -> uint64_t {
    const char* found = strstr(text, name);
    return found == nullptr ? 0 : strtoull(found + strlen(name), nullptr, 10);
  };
  io = penstock_kernel_io{.rchar = counter_of("rchar: "),
                          .wchar = counter_of("wchar: "),
                          .syscr = counter_of("syscr: "),
                          .syscw = counter_of("syscw: "),
                          .read_bytes = counter_of("\nread_bytes: "),
                          .write_bytes = counter_of("\nwrite_bytes: ")};
  return true;
}

uint64_t process_start() noexcept {
  char text[1024] = {};
  read_text("/proc/self/stat", text, sizeof(text) - 1);
  // The process's name ends at the last ')' of the text, because the name itself may contain ')'.
  const char* field_text = strrchr(text, ')');
  for (int field_number = 2; field_text != nullptr && field_number < 22; ++field_number) {
    field_text = strchr(field_text + 1, ' ');
  }
  return field_text == nullptr ? 0 : strtoull(field_text, nullptr, 10);
}

}  // namespace penstock::interpose
