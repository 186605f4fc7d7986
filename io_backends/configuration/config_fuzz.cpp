// Fuzz target: the input is a configuration file of one command, and a site file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "io_backends/configuration/config_file.hpp"
#include "io_backends/tiers/tier.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int fd = ::memfd_create("config", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (fd < 0 || ::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != ssize_t(size)) std::abort();
  const auto words = penstock::read_config_file(path);
  if (!words.ok() && words.error().code == penstock::Errc::internal) std::abort();
  const penstock::SiteNames known{
      {"generate", "read", "tiers", "train"}, {"results", "threads", "tier"}, {"probe", "tier"}};
  for (const std::string_view command : {"read", "tiers"}) {
    const auto site = penstock::read_site_file(path, command, known);
    if (!site.ok()) continue;
    for (const penstock::OptionWord& tier : site->tiers) {
      const auto spec = penstock::parse_tier(tier.key, site->tiers);
      if (!spec.ok() || spec->name != tier.key) std::abort();
      const auto again = penstock::parse_tier("other=" + tier.key + ",limit=1MB/s", site->tiers);
      if (!again.ok() || again->name != "other" || again->options.empty()) std::abort();
    }
  }
  return 0;
}
