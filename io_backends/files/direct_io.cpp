#include "io_backends/files/direct_io.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <string>

namespace penstock {

std::optional<DirectAlignment> direct_alignment(int fd) {
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    if (status.stx_dio_offset_align == 0) return std::nullopt;
    return DirectAlignment{std::bit_ceil(std::max(status.stx_dio_mem_align, 1U)),
                           std::bit_ceil(status.stx_dio_offset_align)};
  }
#else
  static_cast<void>(fd);
#endif
  return DirectAlignment{};
}

Error no_direct_io(std::string_view file) {
  return make_error(Errc::unsupported,
                    "the file system of '" + std::string(file) +
                        "' has no direct I/O; leave direct=1 out, or add fallback=buffered");
}

}  // namespace penstock
