// Fuzz target: the input is used as a manifest, unchanged and with corrected checksums. It is opened in place
// without a check, as readers do, and from memory with a check.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "datagen/manifest/manifest_fixture.hpp"

namespace penstock {
namespace {

void open_and_use(std::span<const std::byte> bytes) {
  static const int fd = ::memfd_create("manifest", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (fd < 0 || ::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, bytes.data(), bytes.size(), 0) != ssize_t(bytes.size()))
    std::abort();
  const auto mapped = Manifest::open(path);
  if (mapped.ok()) {
    call_all_accessors(*mapped);
    static_cast<void>(mapped->check());
  }
  const auto loaded = Manifest::from_bytes({bytes.begin(), bytes.end()});
  if (loaded.ok()) call_all_accessors(*loaded);
  if (loaded.ok() && !mapped.ok()) std::abort();
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  penstock::open_and_use(bytes);
  if (size < sizeof(penstock::manifest_layout::Header)) return 0;
  std::vector<std::byte> corrected(bytes.begin(), bytes.end());
  penstock::update_checksums(corrected);
  penstock::open_and_use(corrected);
  return 0;
}
