// A virtual file driver for HDF5's own library that reads through a Reader. So unchanged HDF5 code can read
// from any back end, with its decorators, counters and injected faults.
#pragma once

#include <hdf5.h>

#include <optional>

#include "io_backends/backend/backend.hpp"

namespace penstock {

// The source of a file that HDF5 reads through a Reader. Source and Reader outlive the file.
struct ReaderSource {
  Reader* reader = nullptr;
  uint64_t bytes = 0;  // size of the object
  // The Reader's first error since this was last cleared. HDF5's own error stack cannot carry it.
  std::optional<Error> failure;
};

// Makes the file access property list `access` open files through `source`, for reading only. The name passed
// to H5Fopen() then appears only in messages. Reads past the end of the object return zeros, as with HDF5's
// own drivers. `internal` if the library refuses. Call it with hdf5_mutex() held (library_input.hpp).
Result<void> use_reader_driver(hid_t access, ReaderSource& source);

}  // namespace penstock
