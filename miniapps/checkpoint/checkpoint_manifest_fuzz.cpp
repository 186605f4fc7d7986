// Fuzz target. The input is parsed as a manifest and as the part of a rank, first unchanged and then with a
// correct checksum. If the input is valid, writing and parsing it again must give the same contents.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/checksums/crc32c.hpp"
#include "miniapps/checkpoint/checkpoint_manifest.hpp"

namespace penstock {
namespace {

void parse(std::string_view text) {
  const auto manifest = parse_checkpoint_manifest(text, "MANIFEST");
  if (manifest.ok()) {
    const auto again = parse_checkpoint_manifest(serialize(*manifest), "MANIFEST");
    if (!again.ok() || !(*again == *manifest)) std::abort();
    if (manifest->bytes() / kCheckpointChunk > text.size()) std::abort();
  }
  const auto part = parse_checkpoint_part(text, 0, "part-0.json");
  if (!part.ok()) return;
  const auto again = parse_checkpoint_part(serialize_part(0, *part), 0, "part-0.json");
  if (!again.ok() || *again != *part) std::abort();
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  penstock::parse(text);
  // Removes the checksum line, if the text has one, and adds the correct one.
  const size_t seal = text.rfind("crc32c ");
  if (seal != std::string::npos) text.resize(seal);
  text += fmt::format("crc32c {:08x}\n", penstock::crc32c(std::as_bytes(std::span(text))));
  penstock::parse(text);
  return 0;
}
