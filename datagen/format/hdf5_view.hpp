// The arrays of an HDF5 file that is in memory, where they lie: no library, no copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "datagen/sample/sample.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Rows of an array as they are in the file: little endian.
struct Hdf5Rows {
  std::vector<std::uint64_t> shape;  // the first side is the rows'; {} is one row of one element
  std::uint64_t row_bytes = 0;
  std::uint64_t rows_per_chunk = 0;                // 0: all rows lie together
  std::vector<std::span<const std::byte>> chunks;  // one, where they do

  std::uint64_t rows() const { return shape.empty() ? 1 : shape.front(); }
  std::span<const std::byte> row(std::uint64_t i) const {
    const std::uint64_t chunk = rows_per_chunk == 0 ? 0 : i / rows_per_chunk;
    const std::uint64_t in_chunk = rows_per_chunk == 0 ? i : i % rows_per_chunk;
    return chunks[static_cast<std::size_t>(chunk)].subspan(static_cast<std::size_t>(in_chunk * row_bytes),
                                                           static_cast<std::size_t>(row_bytes));
  }
};

// What is asked for of a file.
struct Hdf5Wanted {
  std::string_view array;            // "climate/data"
  std::optional<Element> element{};  // any number, where it is not said
};

// The arrays that are wanted, in that order; they point into `file`. not_found where the file lacks one
// (naming those that it has), unsupported where one has other elements or its bytes do not lie there as they
// are (compressed, big endian, chunks that cut rows), corrupt and truncated where the file is; each says at
// which byte, or names the array.
Result<std::vector<Hdf5Rows>> hdf5_arrays(std::span<const std::byte> file,
                                          std::span<const Hdf5Wanted> wanted);

// Of one array of an object, by its headers alone. not_found where the object has no such array; other errors
// are those of opening, reading, and above.
Result<std::vector<std::uint64_t>> hdf5_shape(Backend& backend, std::string_view object,
                                              std::string_view array);

}  // namespace penstock
