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
#include <sys/stat.h>

#include "profiling/interpose/writer/session_file.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

namespace {

// Reads from the begin of the file, and counts what it reads. EINTR is not handled, because reading /proc
// never fails with EINTR.
size_t read_descriptor(long fd, char* to, size_t room) noexcept {
  size_t total = 0;
  while (total < room) {
    const long n = system_call(SYS_pread64, fd, as_argument(to + total), long(room - total), long(total));
    if (n <= 0) {
      break;
    }
    total += size_t(n);
  }
  file.own_read_bytes += total;
  file.begin_read_bytes += total;
  return total;
}

}  // namespace

// Reads a file in /proc by direct system calls. The descriptor is open only during this call, and is closed
// on exec.
size_t read_text(const char* path, char* to, size_t room) noexcept {
  const long fd = system_call(SYS_openat, AT_FDCWD, as_argument(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  const size_t bytes = read_descriptor(fd, to, room);
  system_call(SYS_close, fd);
  return bytes;
}

bool read_kernel_io(penstock_kernel_io& io) noexcept {
  char text[512] = {};
  // After the process has given up rights it may not open the file any more, but it may still read it.
  const long kept_fd = file.kept_kernel_io.get();
  const size_t bytes = kept_fd >= 0 ? read_descriptor(kept_fd, text, sizeof(text) - 1)
                                    : read_text("/proc/self/io", text, sizeof(text) - 1);
  if (bytes == 0) {
    return false;
  }
  bool is_complete = true;
  const auto counter_of = [&](const char* name) -> uint64_t {
    const char* found = strstr(text, name);
    is_complete = is_complete && found != nullptr;
    return found == nullptr ? 0 : strtoull(found + strlen(name), nullptr, 10);
  };
  io = penstock_kernel_io{.rchar = counter_of("rchar: "),
                          .wchar = counter_of("wchar: "),
                          .syscr = counter_of("syscr: "),
                          .syscw = counter_of("syscw: "),
                          .read_bytes = counter_of("\nread_bytes: "),
                          .write_bytes = counter_of("\nwrite_bytes: ")};
  return is_complete;
}

ProcessIdentity process_identity() noexcept {
  ProcessIdentity identity;
  char text[1024] = {};
  read_text("/proc/self/stat", text, sizeof(text) - 1);
  // The process's name ends at the last ')' of the text, because the name itself may contain ')'.
  const char* field_text = strrchr(text, ')');
  for (int field_number = 2; field_text != nullptr && field_number < 22; ++field_number) {
    field_text = strchr(field_text + 1, ' ');
  }
  if (field_text != nullptr) {
    identity.start = strtoull(field_text, nullptr, 10);
    identity.kernel_pid = uint32_t(strtoull(text, nullptr, 10));
  }
  struct stat status {};
  if (system_call(kStatOfName, AT_FDCWD, as_argument("/proc/self/ns/pid"), as_argument(&status), 0) == 0) {
    identity.pid_namespace = uint32_t(status.st_ino);
  }
  return identity;
}

}  // namespace penstock::interpose
