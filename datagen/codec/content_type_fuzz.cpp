// Fuzz target: the input is the beginning of a file, whose type is recognized.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "datagen/codec/content_type.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto beginning = std::as_bytes(std::span(data, size));
  const penstock::ContentType* const type = penstock::content_type_of(beginning);
  const std::string text = penstock::describe_content(beginning, "TFRecord");
  if (type != nullptr ? type->name.empty() || text.find(type->name) == std::string::npos : !text.empty())
    std::abort();
  return 0;
}
