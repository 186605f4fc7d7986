// Fuzz target: the input is opened as a stored sample of compressed TFRecord.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "datagen/format/sample_opener.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kMostRecordBytes = 1 << 20;
  static auto opener = penstock::SampleOpener::make("jpeg.tfrecord.gz", kMostRecordBytes);
  if (!opener.ok()) return 0;
  const auto opened = opener->open(std::as_bytes(std::span(data, size)));
  if (opened.ok() ? opened->size() > kMostRecordBytes : opened.error().what.empty()) std::abort();
  return 0;
}
