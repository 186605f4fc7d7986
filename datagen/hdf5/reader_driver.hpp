// A driver by which HDF5's own library reads through a Reader. So unchanged HDF5 code can read from any back
// end, with its decorators, counters and injected faults.
#pragma once

#include <hdf5.h>

#include <optional>

#include "io_backends/backend/backend.hpp"

namespace penstock {

// What HDF5 reads through: a Reader of the object. The ReaderSource and its Reader must outlive the open
// file.
struct ReaderSource {
  Reader* reader = nullptr;
  uint64_t bytes = 0;  // size of the object
  // The Reader's first error since the owner last cleared this. It is kept here because HDF5's own error
  // stack cannot carry it.
  std::optional<Error> failure;
};

// Changes the file access property list `access` so that files are opened through `source`, for reading only.
// The name passed to H5Fopen() then appears only in messages. Reads past the end of the object return zeros,
// as with HDF5's own drivers. `internal` if the library refuses. Call it with hdf5_mutex() held
// (library_input.hpp).
Result<void> use_reader_driver(hid_t access, ReaderSource& source);

}  // namespace penstock
