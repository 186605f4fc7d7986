// Where the chunks of an HDF5 dataset lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datagen/format/hdf5_object.hpp"
#include "datagen/format/hdf5_source.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct Hdf5Chunks {
  std::vector<std::uint64_t> offsets;  // in the file, in the order of the rows; all bytes of each are there
  std::uint64_t rows_per_chunk = 1;
};

// Of a dataset of `bytes` bytes, `name` in errors. `unsupported` where chunks cut its rows, or not all were
// written; `corrupt` where the index is damaged.
Result<Hdf5Chunks> find_hdf5_chunks(Hdf5Source& source, const Hdf5Object& dataset, std::uint64_t bytes,
                                    const std::string& name);

}  // namespace penstock
