// Reads the links of groups in the old format of HDF5: a tree of symbol tables, with the names in a heap.
#pragma once

#include <cstdint>
#include <vector>

#include "datagen/format/hdf5/hdf5_object.hpp"
#include "datagen/format/hdf5/hdf5_source.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Adds the links of a group to `links`, without its soft links. `tree` and `heap` are the addresses in the
// group's header. Errors: `corrupt`, and those of the source.
Result<void> read_hdf5_symbol_table(Hdf5Source& source, uint64_t tree, uint64_t heap,
                                    std::vector<Hdf5Link>& links);

}  // namespace penstock
