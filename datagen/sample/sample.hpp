// The parts of a sample: named fields, each with the bytes of a file or an array. Recipes make fields and
// formats store them. Recipes and formats do not depend on each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace penstock {

// The element type of an array. Elements are little endian in every format.
enum class Element : uint8_t { u8, i32, i64, f32, f64 };
size_t element_bytes(Element element);
std::string_view element_name(Element element);  // NumPy's name: "float32"

// A named part of a sample. All samples of a recipe have the same fields.
struct Field {
  std::string_view name;       // "image", "data", "climate/labels"; unique in the recipe
  std::string_view codec;      // encoding of its bytes, such as "jpeg", "png", "raw"
  std::string_view extension;  // extension of a file that has only this field: ".JPEG"
  Element element = Element::u8;
  // The shape of the array in one sample, outermost dimension first; {} is one element. A field with `varies`
  // has no shape: it is a list of elements of any length, such as the bytes of a JPEG file.
  std::vector<uint64_t> shape{};
  bool varies = false;
  // For a field with `varies`: how many dimensions of size 1 follow the length. It is 2 for the shape (N, 1,
  // 1).
  unsigned trailing_ones = 0;
  bool one_chunk = false;  // in formats with chunks, one sample of this field is one chunk
};

// Size in bytes of one sample of a field without `varies`.
uint64_t field_bytes(const Field& field);

// Gives the CRC-32 (crc32.hpp) of bytes that a recipe made, faster than reading the bytes again. Only a few
// formats need this CRC.
class Crc32Source {
 public:
  // The CRC-32 of all pieces of the FieldBytes whose member `crc32` points to this object.
  virtual uint32_t crc32() const = 0;

 protected:
  ~Crc32Source() = default;
};

// The bytes of one field of one sample, in pieces that follow one another. The pieces can be parts that a
// recipe has prepared, so it need not copy them. The memory belongs to the recipe's SampleMaker.
struct FieldBytes {
  std::span<const std::span<const std::byte>> pieces{};
  uint64_t bytes = 0;
  std::optional<uint32_t> crc32c{};    // CRC32C of all pieces, if known
  const Crc32Source* crc32 = nullptr;  // source of the CRC-32 of all pieces, if there is one
};
// The CRC32C of some bytes followed by all pieces of the field. `before` is the CRC32C of those bytes. If the
// field knows the CRC32C of its pieces, the pieces are read only if that is faster.
uint32_t crc32c_of(const FieldBytes& field, uint32_t before = 0);
uint32_t crc32_of(const FieldBytes& field);
std::vector<std::byte> joined(const FieldBytes& field);

}  // namespace penstock
