// Gives access to the arrays of an HDF5 file in memory, without a library and without copying bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "datagen/sample/sample.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The rows of an array, in little endian, as spans of the file's bytes, or of `own` if the array is filtered
// or its rows are cut into chunks.
struct Hdf5Rows {
  std::vector<uint64_t> shape;  // the first dimension is the number of rows; {}: one row of one element
  uint64_t row_bytes = 0;
  uint64_t rows_per_chunk = 0;                     // 0: all rows are contiguous
  std::vector<std::span<const std::byte>> chunks;  // a single span if all rows are contiguous
  std::shared_ptr<std::vector<std::byte>> own{};

  uint64_t rows() const { return shape.empty() ? 1 : shape.front(); }
  std::span<const std::byte> row(uint64_t i) const {
    const uint64_t chunk = rows_per_chunk == 0 ? 0 : i / rows_per_chunk;
    const uint64_t row_in_chunk = rows_per_chunk == 0 ? i : i % rows_per_chunk;
    return chunks[size_t(chunk)].subspan(size_t(row_in_chunk * row_bytes), size_t(row_bytes));
  }
};

// An array that the caller wants from a file.
struct Hdf5ArrayRequest {
  std::string_view array;            // "climate/data"
  std::optional<Element> element{};  // required element type; nothing: any number type
};

// Finds the arrays that `requests` name, and returns them in the order of the requests. Their spans may point
// into `file`. `not_found` if an array is missing; the message names the existing arrays. `unsupported` if an
// array does not have the required element type, or if it is big endian, or filtered in a way that is
// not read. `corrupt` or `truncated` if the file is damaged. Each message names
// the offset or the array.
Result<std::vector<Hdf5Rows>> hdf5_arrays(std::span<const std::byte> file,
                                          std::span<const Hdf5ArrayRequest> requests);

// The shape of one array of an object. Reads only the headers. `not_found` if the object has no such array.
// Other errors come from the back end or are those of hdf5_arrays().
Result<std::vector<uint64_t>> hdf5_shape(Backend& backend, std::string_view object, std::string_view array);

}  // namespace penstock
