// Finds the chunks of a dataset of an HDF5 file, by any index that the format has.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "datagen/format/hdf5/hdf5_object.hpp"
#include "datagen/format/hdf5/hdf5_source.hpp"
#include "datagen/manifest/stored_form.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct Hdf5Chunks {
  std::vector<uint64_t> grid{};               // number of chunks along each dimension
  std::vector<ChunkedArray::Chunk> chunks{};  // in row-major order of `grid`
  uint64_t chunk_bytes = 0;                   // bytes of a chunk without filters
  bool are_all_written = true;
};

// Finds all chunks of a dataset whose storage is not contiguous, and checks that their bytes are in the file.
// Messages contain `name`. Errors: `unsupported` if hardly any chunk was ever written, or if there are more
// than kMostSamplesPerObject. `corrupt` if the index is damaged. `truncated` if a chunk is not completely in
// the file.
Result<Hdf5Chunks> find_hdf5_chunks(Hdf5Source& source, const Hdf5Object& dataset, std::string_view name);

}  // namespace penstock
