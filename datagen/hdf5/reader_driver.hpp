// A driver through which HDF5's own library reads from a Reader. So HDF5 code can read from any back end
// without changes, including back ends that count reads or inject faults.
#pragma once

#include <hdf5.h>

#include <optional>

#include "io_backends/backend/backend.hpp"

namespace penstock {

// The Reader from which HDF5 reads an object, with the object's size and the first error. The ReaderSource
// and its Reader must outlive the open file.
struct ReaderSource {
  Reader* reader = nullptr;
  uint64_t bytes = 0;  // size of the object
  // The first error of the Reader since the owner of this object last cleared it. HDF5's own error stack
  // cannot carry an Error.
  std::optional<Error> failure;
};

// Changes the file access property list `access` so that HDF5 reads files through `source`. HDF5 can then
// open files for reading only, and the name that is passed to H5Fopen() appears only in messages. Reads past
// the end of the object return zeros, as with HDF5's own drivers. `internal` if the library refuses. Call it
// with hdf5_mutex() held (library_input.hpp).
Result<void> use_reader_driver(hid_t access, ReaderSource& source);

}  // namespace penstock
