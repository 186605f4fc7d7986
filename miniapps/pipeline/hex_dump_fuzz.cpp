// Feeds any bytes to the parser of hexadecimal dumps.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "miniapps/pipeline/hex_dump.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> octets;
  const auto count = penstock::parse_hex_dump(std::as_bytes(std::span(data, size)), octets);
  if (count.ok() && *count > octets.size()) std::abort();
  return 0;
}
