// NumPy's header before an array (numpy.lib.format): of .npy files and of the members of .npz archives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "datagen/format/object_window.hpp"
#include "datagen/sample/sample.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Version 1.0, C order, a multiple of 64 bytes: the array's bytes follow. The same length for every first
// side.
std::vector<std::byte> npy_header(Element element, std::span<const std::uint64_t> shape);

struct NpyArray {
  char kind = 'u';  // NumPy's letter: u, i, f, b, c ...
  std::uint64_t item_bytes = 1;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
  std::uint64_t header_bytes = 0;
  std::uint64_t data_bytes = 0;

  bool integers() const { return kind == 'i' || kind == 'u'; }
};

// Of the array that takes `length` bytes from `offset` on. `corrupt` when it is none or does not fill them,
// `unsupported` for arrays of records or of Python's objects.
Result<NpyArray> read_npy(ObjectWindow& window, std::uint64_t offset, std::uint64_t length);

// What text such a header holds: "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }". The error's
// sentence has no object in front.
Result<NpyArray> parse_npy_text(std::string_view text);

}  // namespace penstock
