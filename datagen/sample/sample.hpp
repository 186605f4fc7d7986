// What a sample is made of: named fields, each the bytes of a file or an array. Recipes make them, formats
// lay them down; neither knows the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace penstock {

// Of an array; little endian in every format.
enum class Element : std::uint8_t { u8, i32, i64, f32, f64 };
std::size_t element_bytes(Element element);
std::string_view element_name(Element element);  // "float32", as NumPy says it

// One named part that every sample of a recipe has.
struct Field {
  std::string_view name;       // "image", "data", "climate/labels"; unique in the recipe
  std::string_view codec;      // what its bytes are: "jpeg", "png", "raw"
  std::string_view extension;  // of a file that holds it alone: ".JPEG"
  Element element = Element::u8;
  // One sample's, outermost first; {} is one element. A field that varies is a row of elements of any length
  // instead (a JPEG file), and has no shape.
  std::vector<std::uint64_t> shape{};
  bool varies = false;
  // Of a field that varies: an array of one sample has this many sides of 1 after its length, (N, 1, 1).
  unsigned ones = 0;
  bool one_chunk = false;  // formats that can, store each sample of it as one chunk
};

// Bytes of one sample of a field that does not vary.
std::uint64_t field_bytes(const Field& field);

// Knows the CRC-32 (crc32.hpp) of the bytes that it made sooner than they are read again, for the few who
// ask.
class Crc32Source {
 public:
  virtual std::uint32_t crc32() const = 0;  // of all pieces of the FieldBytes that points here

 protected:
  ~Crc32Source() = default;
};

// The bytes of one field of one sample. They are in pieces, to be taken one behind another, so that what is
// composed of a stock need not be copied before it is written. Borrowed from whoever made them.
struct FieldBytes {
  std::span<const std::span<const std::byte>> pieces{};
  std::uint64_t bytes = 0;
  std::optional<std::uint32_t> crc32c{};  // of all pieces, where the maker knows it
  const Crc32Source* crc32 = nullptr;     // likewise
};
// Of all pieces, known or computed; `before` is the CRC32C of what is in front of them.
std::uint32_t crc32c_of(const FieldBytes& field, std::uint32_t before = 0);
std::uint32_t crc32_of(const FieldBytes& field);
std::vector<std::byte> joined(const FieldBytes& field);

}  // namespace penstock
