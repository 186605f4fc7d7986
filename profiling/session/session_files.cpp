#include "profiling/session/session_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "io_backends/core/system/fd.hpp"

namespace penstock {

namespace fs = std::filesystem;

namespace {

bool is_session_header(const penstock_session_header& header) {
  return std::memcmp(header.magic, PENSTOCK_SESSION_MAGIC, sizeof header.magic) == 0 &&
         header.byte_order == PENSTOCK_SESSION_BYTE_ORDER && header.version == PENSTOCK_SESSION_VERSION;
}

}  // namespace

bool read_header(int fd, penstock_session_header& header) {
  const ssize_t read_bytes = retry_eintr([&] { return ::pread(fd, &header, sizeof header, 0); });
  return read_bytes == ssize_t(sizeof header) && is_session_header(header);
}

Result<std::vector<fs::path>> session_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (at->path().extension() == PENSTOCK_SESSION_SUFFIX) files.push_back(at->path());
  if (failed) return errno_error(failed.value(), "cannot read the session", folder.string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace penstock
