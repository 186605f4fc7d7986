// Makes and parses the header that NumPy writes before an array (numpy.lib.format), in .npy files and in
// members of .npz archives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "datagen/format/byte_window.hpp"
#include "datagen/sample/sample.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Makes the header that comes directly before the array's bytes. It has version 1.0, C order and a multiple
// of 64 bytes. Its size does not depend on the length of the first dimension, so that a header with a
// different first length can overwrite it later.
std::vector<std::byte> npy_header(Element element, std::span<const uint64_t> shape);

struct NpyArray {
  char kind = 'u';  // NumPy's letter for the type: u, i, f, b, c ...
  uint64_t item_bytes = 1;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<uint64_t> shape;
  uint64_t header_bytes = 0;
  uint64_t data_bytes = 0;

  bool is_integer() const { return kind == 'i' || kind == 'u'; }
};

// Whether an array begins at `place`, by the first bytes there.
Result<bool> begins_with_npy(ByteWindow& window, const Extent& place);

// Parses the header of an array. The header and the array's bytes must take exactly the `length` bytes at
// `offset`, or no more than these if `allows_more`; otherwise, or if these bytes are no array, the error is
// `corrupt`. `unsupported` for arrays of records or of Python objects, and for format versions other than 1
// to 3.
Result<NpyArray> read_npy(ByteWindow& window, uint64_t offset, uint64_t length, bool allows_more = false);

// Parses the header's text, such as "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }". The error
// message does not name the object: the caller adds it.
Result<NpyArray> parse_npy_text(std::string_view text);

}  // namespace penstock
