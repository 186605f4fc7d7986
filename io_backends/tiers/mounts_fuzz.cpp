// Fuzz target: the input is parsed as the text of /proc/self/mountinfo, and as the layout of a Lustre file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "io_backends/tiers/find_tiers.hpp"
#include "io_backends/tiers/tier.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static_cast<void>(penstock::describe_lustre_layout(std::as_bytes(std::span(data, size))));
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::istringstream mounts(text);
  for (const std::string& folder : penstock::data_mounts(mounts))
    if (folder.empty()) std::abort();
  for (const char* const path : {"/", "/data/set", "/mnt/with space/x"}) {
    std::istringstream mountinfo(text);
    const penstock::TierFacts facts = penstock::facts_from_mountinfo(mountinfo, path);
    if (facts.mount_point.size() > std::string_view(path).size()) std::abort();
  }
  return 0;
}
