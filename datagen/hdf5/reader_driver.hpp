// A virtual file driver for HDF5's own library that reads through a Reader: any back end, with its
// decorators, counters and faults, under an unchanged HDF5.
#pragma once

#include <hdf5.h>

#include <optional>

#include "io_backends/backend/backend.hpp"

namespace penstock {

// What a file that is read through a Reader is opened with. Both outlive the file.
struct ReaderSource {
  Reader* reader = nullptr;
  std::uint64_t bytes = 0;  // the object's size
  // The first of the Reader's since this was last empty: HDF5's own stack of errors has no words for it.
  std::optional<Error> failure;
};

// Has the property list of file access `access` open files through `source`; the name that H5Fopen() is given
// then only is in messages. To read alone. Reads behind the object's end give zeros, as those of HDF5's
// own drivers do. `internal` where the library refuses. With hdf5_mutex() held
// (library_input.hpp).
Result<void> use_reader_driver(hid_t access, ReaderSource& source);

}  // namespace penstock
