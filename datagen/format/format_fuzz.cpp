// Fuzz target, one a format: the input is an object, scanned (what is held true: scan_fixture.hpp).
#include <cstddef>
#include <cstdint>

#include "datagen/format/scan_fixture.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static penstock::ScanFixture fixture(PENSTOCK_FUZZ_FORMAT);
  static_cast<void>(fixture.scan(std::as_bytes(std::span(data, size))));
  return 0;
}
