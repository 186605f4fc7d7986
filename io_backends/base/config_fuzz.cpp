// Fuzz target: the input is a configuration file, of one command and of a site.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "io_backends/base/config_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("config", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (fd < 0 || ::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  for (const std::string_view section : {"", "read"}) {
    const auto words = penstock::read_config_file(path, section, {"generate", "read", "train"});
    if (!words.ok() && words.error().code == penstock::Errc::internal) std::abort();
  }
  return 0;
}
