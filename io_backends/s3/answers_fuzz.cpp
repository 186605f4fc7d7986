// Fuzz target: the input is the answer of an object store.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "io_backends/s3/answers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::s3;
  const std::string_view xml(reinterpret_cast<const char*>(data), size);
  const auto listing = parse_listing(xml);
  // Each entry takes at least one byte of the input.
  if (listing.ok() && listing->objects.size() + listing->prefixes.size() > size) std::abort();
  const Refusal refusal = parse_refusal(xml);
  if (refusal.code.size() + refusal.message.size() > size) std::abort();
  if (is_result(xml, "CopyObjectResult") && xml.find("CopyObjectResult") == xml.npos) std::abort();
  const ContentRange range = parse_content_range(xml);
  if ((range.first || range.object_bytes) && !xml.starts_with("bytes ")) std::abort();
  const auto id = parse_upload_id(xml);
  if (id.ok() && (id->empty() || id->size() > size)) std::abort();
  return 0;
}
