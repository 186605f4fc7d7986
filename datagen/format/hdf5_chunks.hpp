// Where the chunks of an HDF5 dataset lie.
#pragma once

#include "datagen/format/hdf5_object.hpp"
#include "datagen/format/hdf5_source.hpp"
#include "datagen/format/scan_arrays.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Fills extent.chunks, in the order of the rows, and rows_per_chunk; all bytes of each chunk are in the file.
// The dataset is `array`. `unsupported` where chunks cut its rows, or not all were
// written; `corrupt` where the index is damaged.
Result<void> find_hdf5_chunks(Hdf5Source& source, const Hdf5Object& dataset, const StoredArray& array,
                              ArrayExtent& extent);

}  // namespace penstock
