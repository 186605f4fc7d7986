// Fuzz target, one per format: the input is scanned as an object (scan_fixture.hpp says what is checked).
#include <cstddef>
#include <cstdint>

#include "datagen/format/scan_fixture.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static penstock::ScanFixture fixture(PENSTOCK_FUZZ_FORMAT);
  static_cast<void>(fixture.scan(std::as_bytes(std::span(data, size))));
  return 0;
}
