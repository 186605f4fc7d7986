// Fuzz target: the first byte of the input is a number of words. They are taken for a form, and what follows
// them for the object; then the form is read by parts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <tuple>
#include <variant>
#include <vector>

#include "datagen/codec/chunk_filters.hpp"
#include "datagen/codec/gzip.hpp"
#include "datagen/format/form_reader.hpp"
#include "datagen/manifest/stored_form.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  std::span<const uint8_t> input(data, size);
  if (input.empty()) return 0;
  std::vector<uint64_t> words(std::min<size_t>(input.front(), (size - 1) / sizeof(uint64_t)));
  if (!words.empty()) std::memcpy(words.data(), input.data() + 1, words.size() * sizeof(uint64_t));
  const std::optional<StoredForm> form = decode_form(words);
  if (!form) return 0;
  if (encode_form(*form).size() != words.size()) std::abort();
  const uint64_t bytes = form_bytes(*form);
  const auto object = std::as_bytes(input.subspan(1 + words.size() * sizeof(uint64_t)));
  // A row and a chunk are in memory whole, and few stored bytes may stand for many.
  constexpr uint64_t kMostRowBytes = 16 << 20;
  const auto* const array = std::get_if<ChunkedArray>(&*form);
  if (array != nullptr && std::max(bytes / array->shape.front(), array->chunk_bytes()) > kMostRowBytes)
    return 0;
  FormReader reader;
  if (!reader.use(*form).ok()) return 0;
  constexpr uint64_t kMostBytes = 1 << 20;
  for (const uint64_t offset : {uint64_t{0}, bytes / 2, bytes / 3, bytes - std::min<uint64_t>(bytes, 1)}) {
    const SampleExtent extent{offset, std::min(bytes - offset, kMostBytes)};
    if (array != nullptr) std::ignore = stored_range(*array, extent);
    MemoryWindow stored(object);
    const auto read = reader.read(stored, extent);
    if (read.ok() ? read->size() != extent.bytes : read.error().what.empty()) std::abort();
  }
  return 0;
}
