// Reads /proc about this process.
//
// Threads: any thread.
// Locks: file_lock is held, or no other thread records (own_process.hpp).
// Memory: buffers on the stack.
// Forks: a fork's child calls this too, so no function of libc is called that takes a lock or allocates.
#include "profiling/interpose/writer/own_process.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "profiling/interpose/writer/session_file.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

// The descriptor is open only during this call, and is closed on exec. EINTR would end the reading early, but
// files of /proc do not return it.
std::size_t read_text(const char* path, char* to, std::size_t room) noexcept {
  const long fd = system_call(SYS_openat, AT_FDCWD, as_argument(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  std::size_t all = 0;
  while (all < room) {
    const long n = system_call(SYS_read, fd, as_argument(to + all), static_cast<long>(room - all));
    if (n <= 0) {
      break;
    }
    all += static_cast<std::size_t>(n);
  }
  system_call(SYS_close, fd);
  file.own_read += all;
  file.read_to_begin += all;
  return all;
}

bool read_kernel_io(penstock_kernel_io& io) noexcept {
  char text[512] = {};
  if (read_text("/proc/self/io", text, sizeof(text) - 1) == 0) {
    return false;
  }
  const auto value = [&text](const char* name) -> std::uint64_t {
    const char* at = strstr(text, name);
    return at == nullptr ? 0 : strtoull(at + strlen(name), nullptr, 10);
  };
  io = penstock_kernel_io{.rchar = value("rchar: "),
                          .wchar = value("wchar: "),
                          .syscr = value("syscr: "),
                          .syscw = value("syscw: "),
                          .read_bytes = value("\nread_bytes: "),
                          .write_bytes = value("\nwrite_bytes: ")};
  return true;
}

std::uint64_t process_start() noexcept {
  char text[1024] = {};
  read_text("/proc/self/stat", text, sizeof(text) - 1);
  const char* at = strrchr(text, ')');  // the name before it may contain anything
  for (int field = 2; at != nullptr && field < 22; ++field) {
    at = strchr(at + 1, ' ');
  }
  return at == nullptr ? 0 : strtoull(at, nullptr, 10);
}

}  // namespace penstock::interpose
